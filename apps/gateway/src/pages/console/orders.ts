import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Failure } from '@order-gateway/domain/failure';
import { merchantIdOf, parseOrderToken, tokenIn } from '@order-gateway/domain/links';
import { type AmountHundredths, orderCurrencyCodes } from '@order-gateway/domain/money';
import { orderStatuses } from '@order-gateway/domain/orders';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Html } from '@order-gateway/pages/html-page';
import { localAmount } from '@order-gateway/pages/localization';
import { html } from 'hono/html';
import type { Members } from '../../calls/operation.ts';
import type { OrderRecord } from '../../operations/orders.ts';
import { findPaymentLink } from '../../operations/stored-orders.ts';
import { fieldOf, timeOfField } from './forms.ts';
import { timeOf } from './layout.ts';
import { failurePage, type Page, page, type Response, redirect, type Visit } from './visit.ts';

const ordersOnPage = 25;

/** The number of characters of a note that a list shows. */
const listedNoteMax = 80;

/** The list of orders with its filters, and the search. */
export const ordersPages: readonly Page[] = [
  { method: 'GET', path: '/orders', isForAll: true, respond: listOrders },
  { method: 'GET', path: '/search', isForAll: true, respond: searchOrders },
];

/** Reads the filters of a list from the query of its page. */
export function filtersIn(query: URLSearchParams): Members {
  const key = query.get('metadata_key') ?? '';
  return {
    status: query.get('status') || undefined,
    currency: query.get('currency') || undefined,
    created_from: timeOfField(query.get('created_from') ?? '') || undefined,
    created_to: timeOfField(query.get('created_to') ?? '') || undefined,
    metadata: key === '' ? undefined : { [key]: query.get('metadata_value') ?? '' },
  };
}

async function listOrders(visit: Visit): Promise<Response> {
  const { texts, query, link, perform } = visit;
  const members = { ...filtersIn(query), limit: `${ordersOnPage}`, cursor: query.get('cursor') || undefined };
  const listed = await perform<{ readonly orders: readonly OrderRecord[]; readonly next_cursor?: string }>(
    OrderService.method.listOrders,
    members,
  );
  if (!listed.ok && listed.failure.kind !== 'invalid_request') return failurePage(visit, listed.failure);
  const { orders, next_cursor } = listed.ok ? listed.value : { orders: [], next_cursor: undefined };
  const filters = new URLSearchParams([...query].filter(([name, value]) => name !== 'cursor' && value !== ''));
  const next = new URLSearchParams([...filters, ['cursor', next_cursor ?? '']]);
  const pagination = html`<p class="row">${
    query.get('cursor') ? html`<a href="${link(`/orders?${filters}`)}">${texts.first}</a>` : ''
  }${next_cursor === undefined ? '' : html`<a rel="next" href="${link(`/orders?${next}`)}">${texts.next}</a>`}</p>`;
  const content = html`${searchForm(visit)}
${filterForm(visit, listed.ok ? undefined : listed.failure)}
<div class="card">
${orders.length === 0 ? html`<p>${next_cursor === undefined ? texts.noOrders : texts.noOrdersYet}</p>` : ordersTable(visit, orders)}
${pagination}
<p><a href="${link(`/orders.csv?${filters}`)}">${texts.export}</a></p>
</div>`;
  return page(texts.orders, content, listed.ok ? undefined : listed.failure);
}

export function searchForm({ texts, query, link }: Visit): Html {
  return html`<form class="card search" role="search" action="${link('/search')}">
<label>${texts.searchHint} <input type="search" name="q" value="${query.get('q') ?? ''}" autocomplete="off"></label>
<button class="button main">${texts.search}</button>
</form>`;
}

function filterForm({ texts, query, link }: Visit, failure: Failure | undefined): Html {
  const errors = failure?.kind === 'invalid_request' ? failure.errors : [];
  const isOpen =
    errors.length > 0 ||
    ['status', 'currency', 'created_from', 'created_to', 'metadata_key'].some((name) => query.get(name));
  const statuses = Object.fromEntries([['', texts.any], ...orderStatuses.map((status) => [status, texts[status]])]);
  const currencies = Object.fromEntries([['', texts.any], ...orderCurrencyCodes.map((code) => [code, code])]);
  const field = (name: string, label: string, options: object = {}) =>
    fieldOf({ name, label, value: query.get(name), errors, ...options });
  const metadataError = errors.find((error) => error.field.startsWith('metadata'));
  return html`<details class="card"${isOpen ? html` open` : ''}>
<summary>${texts.filters}</summary>
<form class="card-form" action="${link('/orders')}">
<div class="fields">
${field('status', texts.status, { choices: statuses })}
${field('currency', texts.order_currency, { choices: currencies })}
${field('created_from', texts.from, { type: 'datetime-local' })}
${field('created_to', texts.to, { type: 'datetime-local' })}
${field('metadata_key', texts.metadataKey)}
${field('metadata_value', texts.metadataValue)}
</div>
${metadataError === undefined ? '' : html`<p class="error" dir="auto">metadata ${metadataError.message} (${metadataError.code})</p>`}
<p class="actions"><button class="button main">${texts.apply}</button><a href="${link('/orders')}">${texts.clear}</a></p>
</form>
</details>`;
}

function ordersTable(visit: Visit, orders: readonly OrderRecord[]): Html {
  const { texts, language, link } = visit;
  const rows = orders.map(
    (order) => html`<tr><td class="long-id"><a href="${link(orderPath(order))}"><bdi>${order.order_id}</bdi></a></td>
<td><bdi>${listedNote(order.order_note)}</bdi></td>
<td class="number">${amountOf(visit, order)}</td><td>${badgeOf(visit, order)}</td>
<td>${timeOf(Date.parse(order.created_at), language)}</td></tr>`,
  );
  return html`<div class="table"><table>
<thead><tr><th>${texts.order}</th><th>${texts.note}</th><th class="number">${texts.amount}</th><th>${texts.status}</th><th>${texts.created}</th></tr></thead>
<tbody>${rows}</tbody>
</table></div>`;
}

/** Returns a note on a single line, without its end if it is long. */
function listedNote(note: string): string {
  const characters = [...note.replaceAll(/\s+/g, ' ').trim()];
  if (characters.length <= listedNoteMax) return characters.join('');
  return `${characters.slice(0, listedNoteMax).join('').trimEnd()}…`;
}

/** Returns the path of an order's page. An order_id can be any text, so the path contains the service_order_id. */
export function orderPath({ service_order_id }: Pick<OrderRecord, 'service_order_id'>): string {
  return `/orders/${service_order_id}`;
}

export function amountOf(
  { language }: Pick<Visit, 'language'>,
  { order_amount, order_currency }: Pick<OrderRecord, 'order_amount' | 'order_currency'>,
): string {
  const amount = localAmount(BigInt(Math.round(order_amount * 100)) as AmountHundredths, order_currency, language);
  // Many currencies share a symbol.
  return amount.includes(order_currency) ? amount : `${amount} ${order_currency}`;
}

export function badgeOf({ texts }: Visit, { order_status, payment_in_progress_until }: OrderRecord): Html {
  const kind = order_status === 'PAID' ? ' paid' : '';
  const progress =
    payment_in_progress_until === undefined ? '' : html` <span class="status badge">${texts.inProgress}</span>`;
  return html`<span class="status badge${kind}">${texts[order_status]}</span>${progress}`;
}

/** Lists the orders that a text identifies exactly. If there is only one, redirects to its page. */
async function searchOrders(visit: Visit): Promise<Response> {
  const { texts, query } = visit;
  const text = (query.get('q') ?? '').trim();
  if (text === '') return redirect('/orders');
  const found = new Map<number, OrderRecord>();
  for (const key of await keysIn(visit, text)) {
    const order = await findOrder(visit, key);
    if (order.ok) found.set(order.value.service_order_id, order.value);
    else if (order.failure.kind !== 'not_found') return failurePage(visit, order.failure);
  }
  const [order, ...furtherOrders] = found.values();
  if (order === undefined) {
    const failure: Failure = { kind: 'not_found' };
    return page(texts.orders, html`${searchForm(visit)}<p role="status">${texts.noMatch}</p>`, failure);
  }
  if (furtherOrders.length === 0) return redirect(orderPath(order));
  const content = html`${searchForm(visit)}<div class="card">${ordersTable(visit, [order, ...furtherOrders])}</div>`;
  return page(texts.matches, content);
}

/** Returns the keys that a text may be: one of the three ids, or the token or link of an order of this merchant. */
async function keysIn({ deps, call, merchant }: Visit, text: string): Promise<Members[]> {
  const keys: Members[] = [{ order_id: text }, { payment_id: text }];
  if (/^\d{1,16}$/.test(text)) keys.push({ service_order_id: text });
  const token = parseOrderToken(tokenIn(text));
  if (token === undefined || merchantIdOf(token) !== merchant.id) return keys;
  const linked = await findPaymentLink(deps.store.findByToken, call, token);
  if (linked.ok) keys.push({ service_order_id: `${linked.value.order.serviceOrderId}` });
  return keys;
}

/** Finds an order of the merchant by one of its ids. */
export async function findOrder({ perform }: Visit, key: Members): Promise<Result<OrderRecord, Failure>> {
  const found = await perform<{ readonly order: OrderRecord }>(OrderService.method.getOrder, key);
  return found.ok ? success(found.value.order) : failed(found.failure);
}
