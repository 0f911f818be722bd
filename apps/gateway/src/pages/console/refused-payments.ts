import { EventService } from '@order-gateway/contract/gateway/v1/event_service_pb';
import { pageLimit } from '@order-gateway/domain/requests';
import type { Html } from '@order-gateway/pages/html-page';
import { html } from 'hono/html';
import type { eventResponse } from '../../operations/events.ts';
import { timeOf } from './layout.ts';
import { amountOf, orderPath } from './orders.ts';
import { failurePage, type Page, page, type Response, type Visit } from './visit.ts';

const { method } = EventService;
const path = '/refused-payments';

/** The maximum number of calls for a page of the list. */
const callsMax = 4;

/** The list of the payments that the overview counts as refused. */
export const refusedPaymentsPages: readonly Page[] = [{ method: 'GET', path, isForAll: true, respond: listRefused }];

type Event = ReturnType<typeof eventResponse>;
type EventList = { readonly events: readonly Event[]; readonly next_cursor: string };

/**
 * Lists the events of refused payments. The feed keeps them as long as the overview looks back. A call that stopped
 * before the end of the feed is continued a few times.
 */
async function listRefused(visit: Visit): Promise<Response> {
  const { texts, query, link, perform } = visit;
  const events: Event[] = [];
  let cursor = query.get('cursor') || undefined;
  let hasMore = true;
  for (let calls = 0; hasMore && calls < callsMax && events.length < pageLimit.max; calls += 1) {
    const limit = `${pageLimit.max - events.length}`;
    const listed = await perform<EventList>(method.listEvents, { type: 'order.payment_refused', limit, cursor });
    if (!listed.ok) return failurePage(visit, listed.failure);
    events.push(...listed.value.events);
    hasMore = listed.value.next_cursor !== cursor;
    cursor = listed.value.next_cursor;
  }
  const next = new URLSearchParams({ cursor: cursor ?? '' });
  const content = html`<div class="card">
${events.length > 0 ? html`<p>${texts.refusedText}</p>${refusedTable(visit, events)}` : html`<p>${hasMore ? texts.noRefusedYet : texts.noRefused}</p>`}
${hasMore ? html`<p><a rel="next" href="${link(`${path}?${next}`)}">${texts.next}</a></p>` : ''}
</div>`;
  return page(texts.refusedPayments, content);
}

function refusedTable(visit: Visit, events: readonly Event[]): Html {
  const { texts, language, link } = visit;
  const rows = events.map(({ data: order }) => {
    // The last one is the payment that the event announces.
    const refused = order.refused_payments?.at(-1);
    if (refused === undefined) return '';
    const { refused_at, amount, currency, code, payment_id } = refused;
    return html`<tr><td>${timeOf(Date.parse(refused_at), language)}</td>
<td>${amountOf(visit, { order_amount: amount, order_currency: currency })}<br><span class="soft">${texts[code]}</span></td>
<td data-label="${texts.paymentId}"><bdi>${payment_id}</bdi></td>
<td><a href="${link(orderPath(order))}"><bdi>${order.order_id}</bdi></a></td></tr>`;
  });
  return html`<div class="table"><table>
<thead><tr><th>${texts.refusedAt}</th><th>${texts.reason}</th><th>${texts.paymentId}</th><th>${texts.order}</th></tr></thead>
<tbody>${rows}</tbody>
</table></div>`;
}
