import type { OrderStatus } from '@order-gateway/domain/orders';
import type { SignatureCheck } from '@order-gateway/domain/signing';
import { type Html, htmlPage } from '@order-gateway/pages/html-page';
import { paymentPageStyle } from '@order-gateway/pages/styles';
import { html } from 'hono/html';

/** The path, below the base URL, to which the customers of demo orders return. */
export const demoReturnPath = '/demo/return';

/**
 * For each status of an order: the title that a shop would show after a return with a valid signature, and a text that
 * explains the return.
 */
const trusted: Readonly<Record<OrderStatus, readonly [title: string, text: string]>> = {
  PAID: [
    'Thank you for your payment',
    'The gateway signed this return, so a shop can trust its status. Before it ships, it looks up the order.',
  ],
  UN_PAID: ['Your order is not paid', 'The customer came back without paying. The payment link still works.'],
  EXPIRED: ['Your order has expired', 'It can no longer be paid. A shop creates a new order.'],
  CANCELLED: ['Your order was cancelled', 'It can no longer be paid. A shop creates a new order.'],
};

/** For each reason not to trust a return: the label of its signature, and a text that says what a shop does. */
const untrusted: Readonly<Record<Exclude<SignatureCheck, 'valid'>, readonly [label: string, text: string]>> = {
  missing: ['Not signed', 'Anyone could have written this address. A shop ignores its status and looks up the order.'],
  too_old: ['Too old', 'The signature is more than an hour old. A shop ignores the status and looks up the order.'],
  wrong: ['Not valid', 'The signature does not match the order. A shop ignores the status and looks up the order.'],
};

/**
 * Renders the page to which the customer returns, in place of a shop's page. It shows what a shop receives in the
 * query, and whether the shop can trust it. The query is untrusted, because anyone can open the page with any
 * parameters.
 */
export function demoReturnPage(baseUrl: string, query: URLSearchParams, check: SignatureCheck): Promise<string> {
  const status = query.get('order_status') ?? '';
  const isValid = check === 'valid';
  const [label, text] = isValid ? ['Valid', trusted[status as OrderStatus][1]] : untrusted[check];
  const title = isValid ? trusted[status as OrderStatus][0] : 'Your order is being checked';
  const badge = (value: string, kind: '' | 'paid' | 'untrusted') => html`<span class="status ${kind}">${value}</span>`;
  const body = html`<p class="test">Demo: this page stands in for a shop</p>
<h1>${title}</h1>
<p>${text}</p>
<dl class="block">
${rowOf('Signature', badge(label, isValid ? 'paid' : 'untrusted'))}
${rowOf('order_id', query.get('order_id'))}
${rowOf('order_status', status && badge(status, isValid && status === 'PAID' ? 'paid' : ''))}
${rowOf('service_order_id', query.get('service_order_id'))}
${rowOf('signed_at', signedTime(query.get('signed_at')))}
</dl>
<p class="legal block"><a href="${baseUrl}/docs/payment-page#return-to-the-merchant">How a shop verifies a return</a><a href="${baseUrl}/docs">API reference</a></p>`;
  return htmlPage({ language: 'en', title: `${title} | Demo`, styles: [paymentPageStyle], body });
}

/** Renders the row of a parameter with the value that the shop receives. An absent or empty parameter has no row. */
function rowOf(name: string, value: string | Html | null): Html | '' {
  return value === null || value === '' ? '' : html`<div><dt>${name}</dt><dd><bdi>${value}</bdi></dd></div>`;
}

/** Appends the date and time in UTC to Unix seconds. Any other text stays unchanged. */
function signedTime(text: string | null): string | null {
  return text !== null && /^\d{1,10}$/.test(text) ? `${text} (${new Date(Number(text) * 1_000).toUTCString()})` : text;
}
