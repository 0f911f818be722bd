import { WebhookService } from '@order-gateway/contract/gateway/v1/webhook_service_pb';
import { pageLimit } from '@order-gateway/domain/requests';
import type { Html } from '@order-gateway/pages/html-page';
import { html } from 'hono/html';
import type { OrderRecord } from '../../operations/orders.ts';
import type { EndpointResponse } from '../../operations/webhooks.ts';
import { filled, timeOf } from './layout.ts';
import { amountOf } from './orders.ts';
import { failureText, type Visit } from './visit.ts';
import type { DeliveryList } from './webhooks.ts';

type Entry = [time: string | undefined, text: string | Html];

/**
 * Returns an entry of the timeline for each delivery of the order's events. There are none if the operator manages the
 * endpoints.
 */
async function deliveriesOf({ texts, link, perform }: Visit, order: OrderRecord): Promise<Entry[]> {
  const { order_id } = order;
  const { method } = WebhookService;
  const listed = await perform<{ readonly endpoints: readonly EndpointResponse[] }>(method.listWebhookEndpoints, {});
  if (!listed.ok && listed.failure.kind !== 'permission_denied')
    return [[order.created_at, failureText(listed.failure)]];
  const entries = (listed.ok ? listed.value.endpoints : []).map(async ({ id, url }): Promise<Entry[]> => {
    const members = { id, order_id, limit: `${pageLimit.max}` };
    const found = await perform<DeliveryList>(method.listWebhookDeliveries, members);
    const endpoint = html`<a href="${link(`/webhooks/${id}?${new URLSearchParams({ order_id })}`)}">${url}</a>`;
    if (!found.ok) return [[order.created_at, html`${endpoint}: ${failureText(found.failure)}`]];
    const furtherDeliveries: Entry[] =
      found.value.next_cursor === undefined ? [] : [[order.created_at, filled(texts.moreDeliveries, { endpoint })]];
    const shown = found.value.deliveries.map(({ type, created_at, status, attempts, ...latest }): Entry => {
      const result = html`${texts[status]}${latest.last_result === undefined ? '' : html`, <bdi>${latest.last_result}</bdi>`}`;
      const text = filled(texts.wasDelivered, { type, endpoint, result, count: attempts });
      return [latest.last_attempt_at ?? created_at, text];
    });
    return [...furtherDeliveries, ...shown];
  });
  return (await Promise.all(entries)).flat();
}

/** Renders what has happened to the order and when it expires, in chronological order. */
export async function timelineOf(visit: Visit, order: OrderRecord): Promise<Html[]> {
  const { texts, language } = visit;
  const entries: Entry[] = [
    [order.created_at, texts.wasCreated],
    [
      order.paid_at,
      filled(order.payment_method === 'manual' ? texts.wasMarkedPaid : texts.wasPaid, {
        payment: order.payment_id ?? '',
      }),
    ],
    [order.cancelled_at, texts.wasCancelled],
    [order.payment_in_progress_until, texts.until],
    ...reversalsOf(visit, order),
    ...(await deliveriesOf(visit, order)),
  ];
  if (order.order_status === 'EXPIRED')
    entries.push([order.order_expires_at, texts.hasExpired], [order.payable_until, texts.payableUntil]);
  if (order.order_status === 'UN_PAID') entries.push([order.order_expires_at, texts.expires]);
  for (const { refused_at, payment_id, code, refunded_at, ...refused } of order.refused_payments ?? []) {
    const text = refunded_at === undefined ? texts.wasRefused : texts.wasRefusedAndRefunded;
    entries.push([
      refused_at,
      filled(text, { payment: payment_id, amount: moneyOf(visit, refused), code: texts[code] }),
    ]);
  }
  return entries
    .flatMap(([time, text]) => (time === undefined ? [] : [{ ms: Date.parse(time), text }]))
    .toSorted((a, b) => a.ms - b.ms)
    .map(({ ms, text }) => html`<li>${timeOf(ms, language)}${text}</li>`);
}

/** Returns the entries of the refunds and disputes. The record has the first and the current status of each. */
function reversalsOf(visit: Visit, { refunds = [], disputes = [] }: OrderRecord): Entry[] {
  const { texts } = visit;
  const ofRefunds = refunds.flatMap(({ created_at, refunded_at, updated_at, status, ...refund }): Entry[] => {
    const code = refund.reason ?? '';
    const values = { refund: refund.refund_id, payment: refund.payment_id, amount: moneyOf(visit, refund), code };
    const wasPending = status === 'PENDING' || Date.parse(created_at) < Date.parse(refunded_at ?? updated_at);
    return [
      [wasPending ? created_at : undefined, filled(texts.refundPending, values)],
      [refunded_at, filled(texts.wasRefunded, values)],
      [status === 'FAILED' ? updated_at : undefined, filled(texts.refundFailed, values)],
    ];
  });
  const ofDisputes = disputes.flatMap(({ created_at, updated_at, status, ...dispute }): Entry[] => {
    const values = { dispute: dispute.dispute_id, payment: dispute.payment_id, amount: moneyOf(visit, dispute) };
    return [
      [created_at === updated_at ? undefined : created_at, filled(texts.disputeBegan, values)],
      [updated_at, filled(texts.disputeStatus, { ...values, status: texts[status], code: dispute.reason ?? '' })],
    ];
  });
  return [...ofRefunds, ...ofDisputes];
}

function moneyOf(visit: Visit, { amount, currency }: { readonly amount: number; readonly currency: string }): string {
  return amountOf(visit, { order_amount: amount, order_currency: currency });
}
