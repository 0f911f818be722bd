import type { AccountId } from '@order-gateway/domain/accounts';
import type { EventType } from '@order-gateway/domain/events';
import type { BaseUrl, OrderToken } from '@order-gateway/domain/links';
import { newOrder, type Order, parseOrder, type RefusedPayment } from '@order-gateway/domain/orders';
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
};

/** Returns the response to {@link exampleOrder} from a gateway with this base URL. */
export function exampleResponse(baseUrl: string) {
  return orderResponse(stored, baseUrl as BaseUrl);
}

/** Returns an event of {@link exampleOrder}, with the order as it was after the event. */
export function exampleEvent(baseUrl: string, type: EventType) {
  const eventId = 'evt_4b1c0f6a2d9e4f7f8a3c5d6e7f809112';
  return eventResponse({ eventId, type, ...events[type] }, 'live', baseUrl as BaseUrl);
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
