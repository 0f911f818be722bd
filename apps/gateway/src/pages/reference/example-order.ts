import { type AccountId, lateDays } from '@order-gateway/domain/accounts';
import type { EventType } from '@order-gateway/domain/events';
import type { BaseUrl, OrderToken } from '@order-gateway/domain/links';
import type { AmountHundredths } from '@order-gateway/domain/money';
import {
  type Dispute,
  type DisputeStatus,
  newOrder,
  type Order,
  parseOrder,
  type Refund,
  type RefundStatus,
  type RefusedPayment,
} from '@order-gateway/domain/orders';
import { eventResponse } from '../../operations/events.ts';
import { orderResponse } from '../../operations/orders.ts';

/** The order that the reference shows. A test compares it with the fixture of the API's own example. */
export const exampleOrder = {
  order_id: 'WEB-1001',
  order_amount: 10.0,
  order_currency: 'USD',
  order_note: 'Blue T-shirt, size M',
  service_type: 'PHYSICAL_GOODS',
  customer_name: 'Grace Hopper',
  customer_email: 'grace@example.org',
  customer_phone: '+1 (202) 555-0143',
  customer_address_line1: '1 Navy Way',
  customer_address_line2: 'Building 7',
  customer_address_city: 'Arlington',
  customer_address_state: 'Virginia',
  customer_address_country: 'United States',
  customer_address_postal_code: '22202',
  order_checksum: 'none',
  return_url: 'https://shop.example.com/return?cart=17',
};

const parsed = parseOrder(exampleOrder);
if (!parsed.ok) throw new Error('the example order is not valid');

const stored: Order = {
  serviceOrderId: 1,
  ...newOrder(parsed.value.fields, {
    merchantId: 1 as AccountId,
    orderToken: 'OvMZ4LjPbCDhqAt2DLUkHWsLMFiPISc7' as OrderToken,
    createdAtMs: Date.parse('2026-11-20T21:01:42.172Z'),
    expiresAtMs: Date.parse('2026-11-21T21:01:42.172Z'),
    metadata: null,
  }),
};

const cancelledAtMs = Date.parse('2026-11-20T21:30:00.481Z');
const payment = { checkoutId: null, paymentId: 'pay_83b1f0', paidAtMs: Date.parse('2026-11-20T21:03:10.000Z') };

const refusedPayment: RefusedPayment = {
  checkoutId: null,
  paymentId: 'pay_9c40d7',
  paidAtMs: Date.parse('2026-11-20T21:03:12.000Z'),
  amount: parsed.value.fields.order_amount,
  currency: parsed.value.fields.order_currency,
  code: 'order_already_paid',
  refusedAtMs: Date.parse('2026-11-20T21:03:14.205Z'),
};

const reversal = {
  checkoutId: null,
  paymentId: payment.paymentId,
  currency: parsed.value.fields.order_currency,
  amount: 450n as AmountHundredths,
};

/** Returns the paid order with a refund or a dispute that had these statuses, and the time of the last one. */
function reversed(statuses: Readonly<Partial<Record<RefundStatus | DisputeStatus, string>>>, reason: string | null) {
  const history = Object.entries(statuses).map(([status, at]) => ({ status, atMs: Date.parse(at), reason }));
  const refundedAt = statuses.SUCCEEDED;
  const refund = {
    ...reversal,
    reporterId: stored.merchantId,
    refundId: 'return-17',
    providerRefundId: 're_3PqW0a',
    history: history as Refund['history'],
    note: null,
    refundedAtMs: refundedAt === undefined ? null : Date.parse(refundedAt),
  };
  const dispute = { ...reversal, disputeId: 'dp_1QxT7c', history: history as Dispute['history'] };
  const isDispute = Object.keys(statuses).some((status) => status === 'OPEN');
  const reversals = { version: 1, refunds: isDispute ? [] : [refund], disputes: isDispute ? [dispute] : [] };
  const order: Order = { ...stored, orderStatus: 'PAID', payment, reversals };
  return { createdAtMs: history.at(-1)?.atMs ?? 0, order };
}

const requestedAt = '2026-11-22T09:12:07.310Z';
const refundedAt = '2026-11-22T09:12:09.744Z';
const disputedAt = '2026-12-03T16:40:51.007Z';

/** When each event happened, and the order after it. */
const events: Readonly<Record<EventType, { readonly createdAtMs: number; readonly order: Order }>> = {
  'order.paid': {
    createdAtMs: Date.parse('2026-11-20T21:03:11.934Z'),
    order: { ...stored, orderStatus: 'PAID', payment },
  },
  'order.expired': {
    createdAtMs: Date.parse('2026-11-21T21:01:43.020Z'),
    order: { ...stored, orderStatus: 'EXPIRED' },
  },
  'order.cancelled': { createdAtMs: cancelledAtMs, order: { ...stored, orderStatus: 'CANCELLED', cancelledAtMs } },
  'order.payment_refused': {
    createdAtMs: refusedPayment.refusedAtMs,
    order: { ...stored, orderStatus: 'PAID', payment, refusedPayments: [refusedPayment] },
  },
  'order.refunded': reversed({ PENDING: requestedAt, SUCCEEDED: refundedAt }, null),
  'order.refund_failed': reversed({ PENDING: requestedAt, FAILED: refundedAt }, 'expired_or_canceled_card'),
  'order.disputed': reversed({ OPEN: disputedAt }, 'product_not_received'),
  'order.dispute_closed': reversed({ OPEN: disputedAt, WON: '2027-01-08T10:02:33.918Z' }, 'product_not_received'),
};

/** Returns the response to {@link exampleOrder} from a gateway with this base URL. */
export function exampleResponse(baseUrl: string) {
  return orderResponse(stored, baseUrl as BaseUrl);
}

/** Returns an event of {@link exampleOrder}, with the order as it was after the event. */
export function exampleEvent(baseUrl: string, type: EventType) {
  const eventId = 'evt_4b1c0f6a2d9e4f7f8a3c5d6e7f809112';
  const deps = { baseUrl: () => baseUrl as BaseUrl, lateDays: () => lateDays.byDefault };
  return eventResponse({ eventId, type, ...events[type] }, 'live', deps);
}

/** The webhook endpoint that the reference shows. */
export const exampleEndpoint = {
  id: 'we_0d5f6c1e2b3a4958a7b6c5d4e3f20110',
  url: 'https://shop.example.com/webhooks',
  event_types: ['order.paid'],
  status: 'enabled',
  created_at: '2026-11-20T20:58:03.114+00:00',
  signs_returns: true,
};

/** The `next_cursor` of the pages that the reference shows. */
export const exampleCursor = 'MTc5NTIwODUwMjE3Mi4x';
