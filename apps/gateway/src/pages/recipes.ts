import { readFile } from 'node:fs/promises';
import { canonicalText, checksumOf } from '@gateway/domain/order-checksum';
import { parseOrder } from '@gateway/domain/parse-order';
import { html } from 'hono/html';
import { exampleOrder } from './example-order.ts';
import { codeBlock, type Html } from './html-page.ts';

/** The sections of {@link recipes}, for the table of contents. */
export const recipeTitles = { retries: 'Retries', checksum: 'Checksum', grpc: 'gRPC', programs: 'Programs to copy' };

const exampleSecret = 'sk_ThisSecretIsOnlyAnExampleForTheDocumentation0';

/** Programs in docs/examples. The tests run them. */
const programs = [
  ['curl', 'create-order.sh'],
  ['Node.js', 'create-order.mjs'],
  ['Python', 'create_order.py'],
  ['PHP', 'create-order.php'],
  ['gRPC with Node.js', 'grpc-client.mjs'],
] as const;

const root = new URL('../../../../', import.meta.url);

/** The gRPC contract, for merchants who do not have the repository. */
export function contractFile(): Promise<string> {
  return readFile(new URL('proto/gateway/v1/order_service.proto', root), 'utf8');
}

/** How to retry, make a checksum and call the gateway over gRPC: what the list of operations does not say. */
export async function recipes(baseUrl: string): Promise<Html> {
  const sources = await Promise.all(
    programs.map(([, file]) => readFile(new URL(`docs/examples/${file}`, root), 'utf8')),
  );
  const example = parseOrder(exampleOrder);
  if (!example.ok) throw new Error('the example order is invalid');
  const { retries, checksum, grpc, programs: programsTitle } = recipeTitles;
  return html`<section id="retries"><h2>${retries}</h2>
<p>The <code>order_id</code> makes retries safe. The same order sent again returns 200 with the first response and the header <code>Idempotent-Replayed: true</code>. It never creates a second order. Another order with the same <code>order_id</code> returns 409 <code>order_id_conflict</code>.</p>
<p>If there was no response, or after 429, 503 and 504, send the same order again. Wait for the seconds in <code>Retry-After</code>; without it, wait a little longer after each attempt. Other errors stay the same until you change the request.</p>
</section>
<section id="checksum"><h2>${checksum}</h2>
<p>An <code>order_checksum</code> that begins with <code>v1=</code> is verified. Any other text is stored as it is, unless your account requires <code>v1=</code>.</p>
<ol>
<li>Take the 15 other fields in the order of <a href="#Order">Order</a>. Write the amount with two decimals and an absent second address line as nothing. In every value write <code>\\</code> as <code>\\\\</code> and <code>|</code> as <code>\\|</code>.</li>
<li>Join them with <code>|</code>.</li>
<li>Calculate HMAC-SHA256 over this text in UTF-8. The key is the client secret that you send with the request.</li>
<li>Send <code>v1=</code> and the lower-case hex as <code>order_checksum</code>.</li>
</ol>
<p>For the order above and the secret <code>${exampleSecret}</code>, the text and the checksum are:</p>
${codeBlock(`${canonicalText(example.value)}\n\n${checksumOf(example.value, exampleSecret)}`)}
<p>A wrong checksum returns 400 <code>checksum_mismatch</code> with the text that the gateway hashed as <code>canonical_text</code>. Compare it with yours.</p>
</section>
<section id="grpc"><h2>${grpc}</h2>
<p>The service <code>gateway.v1.OrderService</code> takes the same orders. It is served over HTTP/2 without TLS on the gRPC port, whose address the operator of the gateway knows, and as Connect and gRPC-Web at this base URL. Field names and error codes are the same. The credentials are metadata of the same names.</p>
<p>Save the contract: <code>curl -O ${baseUrl}/docs/order_service.proto</code></p>
<p>A replayed order has the response metadata <code>idempotent-replayed: true</code>. The details of an error status contain a <code>google.rpc.ErrorInfo</code>, whose <code>reason</code> is the error code.</p>
</section>
<section id="programs"><h2>${programsTitle}</h2>
<p>Each program creates an order and looks it up again. Its first lines say how to start it.</p>
${programs.map(([name], index) => html`<details><summary>${name}</summary>${codeBlock(sources[index] ?? '')}</details>`)}
</section>`;
}
