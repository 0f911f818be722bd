import { readFile } from 'node:fs/promises';
import type { FailureCode } from '@gateway/domain/failure';
import { canonicalText, checksumOf } from '@gateway/domain/order-checksum';
import { eventTypes } from '@gateway/domain/order-states';
import { formatSigningSecret, webhookSignature } from '@gateway/domain/webhook-signature';
import { html } from 'hono/html';
import { exampleEvent, exampleFields } from './example-order.ts';
import { codeBlock, errorLink, type Html, withCode } from './html-page.ts';
import { eventTexts } from './openapi.ts';
import { type RpcMethod, rpcFailures, withCredentials } from './operation-failures.ts';

/** The sections of {@link recipes}, for the table of contents. */
export const recipeTitles = {
  retries: 'Retries',
  events: 'Poll the events',
  webhooks: 'Verify a webhook',
  checksum: 'Checksum',
  grpc: 'gRPC',
  programs: 'Programs to copy',
};

const exampleSecret = 'sk_ThisSecretIsOnlyAnExampleForTheDocumentation0';
const exampleKey = Buffer.from('ThisKeyIsOnlyAnExampleForTheDocs');

/** Programs in docs/examples. The tests run them. */
const programs = [
  ['Create an order: curl', 'create-order.sh'],
  ['Create an order: Node.js', 'create-order.mjs'],
  ['Create an order: Python', 'create_order.py'],
  ['Create an order: PHP', 'create-order.php'],
  ['Create an order: gRPC with Node.js', 'grpc-client.mjs'],
  ['Verify a webhook or a return: shell', 'verify-signatures.sh'],
  ['Verify a webhook or a return: Node.js', 'verify-signatures.mjs'],
  ['Verify a webhook or a return: Python', 'verify_signatures.py'],
  ['Verify a webhook or a return: PHP', 'verify-signatures.php'],
] as const;

const root = new URL('../../../../', import.meta.url);

/** A file of the gRPC contract, for those who do not have the repository. */
export function contractFile(name: 'order_service.proto' | 'checkout_service.proto'): Promise<string> {
  return readFile(new URL(`proto/gateway/v1/${name}`, root), 'utf8');
}

/** How to do what the list of operations does not say. */
export async function recipes(baseUrl: string): Promise<Html> {
  const sources = await Promise.all(
    programs.map(([, file]) => readFile(new URL(`docs/examples/${file}`, root), 'utf8')),
  );
  const { retries, events, programs: programsTitle } = recipeTitles;
  return html`<section id="retries"><h2>${retries}</h2>
<p>The <code>order_id</code> makes retries safe. The same order sent again returns 200 with the first response and the header <code>Idempotent-Replayed: true</code>. It never creates a second order. Another order with the same <code>order_id</code> returns 409 <code>order_id_conflict</code>. An order that is cancelled again returns 200, too.</p>
<p>If there was no response, or after 429, 503 and 504, send the same request again. Wait for the seconds in <code>Retry-After</code>; without it, wait a little longer after each attempt. Other errors stay the same until you change the request.</p>
</section>
<section id="events"><h2>${events}</h2>
<p>Each change of an order's state is one <a href="#Event">Event</a>:</p>
<dl>${eventTypes.map((type) => html`<dt><code>${type}</code></dt><dd>${withCode(eventTexts[type].meaning)}</dd>`)}</dl>
<ol>
<li>Call <code>GET ${baseUrl}/events?limit=100</code> with your stored cursor as <code>cursor</code>, the first time without one.</li>
<li>Handle the events in their order. You may get one again after a crash: do nothing for an <code>id</code> that you have handled.</li>
<li>Store <code>next_cursor</code> together with what you did.</li>
<li>After a full page call again at once, otherwise after some seconds.</li>
</ol>
<p>No event is missed, and none moves. An event may appear a moment after its <code>timestamp</code>. Events are listed for 30 days.</p>
</section>
${webhooksRecipe(baseUrl)}
${checksumRecipe()}
${grpcRecipe(baseUrl)}
<section id="programs"><h2>${programsTitle}</h2>
<p>The first lines of each program say how to start it.</p>
${programs.map(([name], index) => html`<details><summary>${name}</summary>${codeBlock(sources[index] ?? '')}</details>`)}
</section>`;
}

function webhooksRecipe(baseUrl: string): Html {
  const event = exampleEvent(baseUrl, 'order.paid');
  const timestampSeconds = Math.floor(Date.parse(event.timestamp) / 1_000);
  const body = JSON.stringify(event);
  const signature = webhookSignature({ id: event.id, timestampSeconds, body }, [exampleKey]);
  return html`<section id="webhooks"><h2>${recipeTitles.webhooks}</h2>
<p>The operator of the gateway can set one endpoint of yours, and gives you its signing secret. Each event is then sent there with <code>POST</code>, as Standard Webhooks (standardwebhooks.com) has it: use one of its libraries, or do this.</p>
<ol>
<li>Take the body as bytes, before you parse it. Join <code>webhook-id</code>, <code>webhook-timestamp</code> and the body with <code>.</code> between them.</li>
<li>Calculate HMAC-SHA256 over this text. The key is what follows <code>whsec_</code> in the signing secret, decoded from base64.</li>
<li>The header <code>webhook-signature</code> has one or two signatures with a blank between them. One of them must be <code>v1,</code> and the base64 of your result. Compare in constant time.</li>
<li>Reject a <code>webhook-timestamp</code> that differs from your clock by more than 5 minutes.</li>
<li>Respond with 2xx within 15 seconds, and do the work afterwards.</li>
</ol>
<p>With the secret <code>${formatSigningSecret(exampleKey)}</code> the text and the header are:</p>
${codeBlock(`${event.id}.${timestampSeconds}.${body}\n\nwebhook-signature: ${signature}`)}
<p>Webhooks come at least once and in any order: <code>webhook-id</code> shows what you have seen. The list of events holds the same.</p>
<p>The return to your <code>return_url</code> is signed with the same key: <code>signature</code> is <code>v1=</code> and the lower-case hex of HMAC-SHA256 over <code>order_id|service_order_id|order_status|signed_at</code>, with <code>\\</code> and <code>|</code> in a value written as <code>\\\\</code> and <code>\\|</code>.</p>
</section>`;
}

function checksumRecipe(): Html {
  return html`<section id="checksum"><h2>${recipeTitles.checksum}</h2>
<p>An <code>order_checksum</code> that begins with <code>v1=</code> is verified. Any other text is stored as it is, unless your account requires <code>v1=</code>.</p>
<ol>
<li>Take the 15 other fields from <code>order_id</code> to <code>return_url</code> in the order of <a href="#Order">Order</a>. Write the amount with two decimals and an absent second address line as nothing. In every value write <code>\\</code> as <code>\\\\</code> and <code>|</code> as <code>\\|</code>.</li>
<li>Join them with <code>|</code>.</li>
<li>Calculate HMAC-SHA256 over this text in UTF-8. The key is the client secret that you send with the request.</li>
<li>Send <code>v1=</code> and the lower-case hex as <code>order_checksum</code>.</li>
</ol>
<p>For the order above and the secret <code>${exampleSecret}</code>, the text and the checksum are:</p>
${codeBlock(`${canonicalText(exampleFields)}\n\n${checksumOf(exampleFields, exampleSecret)}`)}
<p>A wrong checksum returns 400 <code>checksum_mismatch</code> with the text that the gateway hashed as <code>canonical_text</code>. Compare it with yours.</p>
</section>`;
}

const rpcMeanings: Readonly<Record<RpcMethod, string>> = {
  'OrderService/CreateOrder': 'As `POST /order`.',
  'OrderService/GetOrder': 'As `GET /order/{order_id}`, by `order_id` or `service_order_id`.',
  'OrderService/CancelOrder': 'As `POST /order/{order_id}/cancel`, by `order_id` or `service_order_id`.',
  'OrderService/ListOrders': 'As `GET /orders`.',
  'CheckoutService/ResolvePaymentLink': 'What to pay with a payment link, and to whom.',
  'CheckoutService/RecordPayment':
    'Records that the customer paid. Idempotent by `payment_id`. After `order_already_paid`, `order_cancelled`, `order_expired` and `payment_mismatch` give the money back.',
};

const rpcMethods = Object.keys(rpcFailures) as RpcMethod[];

function grpcRecipe(baseUrl: string): Html {
  const links = (codes: readonly FailureCode[]) =>
    html`<ul class="row">${codes.map((code) => html`<li>${errorLink(code, baseUrl)}</li>`)}</ul>`;
  const own = (method: RpcMethod) =>
    rpcFailures[method].filter((code) => !withCredentials.some((common) => common === code));
  const methods = rpcMethods.map(
    (method) =>
      html`<dt><code>gateway.v1.${method}</code></dt><dd>${withCode(rpcMeanings[method])}${links(own(method))}</dd>`,
  );
  const folder = 'gateway/v1';
  return html`<section id="grpc"><h2>${recipeTitles.grpc}</h2>
<p><code>OrderService</code> is for merchants. <code>CheckoutService</code> is for checkout systems, which take the payments of all merchants and have credentials of their own. Both are served over HTTP/2 without TLS on the gRPC port, whose address the operator of the gateway knows, and as Connect and gRPC-Web at this base URL. Field names and error codes are the same as in JSON. The credentials are metadata of the same names.</p>
<dl>${methods}</dl>
<p>Each of them can also return:</p>
${links(withCredentials)}
<p>Save the contract:</p>
${codeBlock(['order_service.proto', 'checkout_service.proto'].map((name) => `curl --create-dirs -o ${folder}/${name} ${baseUrl}/docs/${name}`).join('\n'))}
<p>A replayed call has the response metadata <code>idempotent-replayed: true</code>. The details of an error status contain a <code>google.rpc.ErrorInfo</code>, whose <code>reason</code> is the error code. There are no RPCs for events: use <code>GET /events</code>.</p>
</section>`;
}
