import type { EventType } from '@gateway/domain/order-states';

/** The order that the reference shows. A test compares it with the fixture of the interface's own example. */
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

const exampleToken = 'OvMZ4LjPbCDhqAt2DLUkHWsLMFiPISc7';

/** The response of the gateway at a base URL to {@link exampleOrder}. */
export function exampleResponse(baseUrl: string) {
  return {
    service_order_id: 1,
    created_at: '2026-11-20T21:01:42.172+00:00',
    order_id: exampleOrder.order_id,
    order_status: 'UN_PAID',
    order_token: exampleToken,
    payment_link: `${baseUrl}/payment/${exampleToken}`,
  };
}

const paidAt = '2026-11-20T21:03:10.000+00:00';
const cancelledAt = '2026-11-20T21:30:00.481+00:00';
const expiresAt = '2026-11-21T21:01:42.172+00:00';

/** What an event changes in the order, and when. */
const changes: Readonly<Record<EventType, { readonly timestamp: string; readonly fields: object }>> = {
  'order.paid': {
    timestamp: '2026-11-20T21:03:11.934+00:00',
    fields: { order_status: 'PAID', paid_at: paidAt, payment_id: 'pay_83b1f0' },
  },
  'order.expired': { timestamp: '2026-11-21T21:01:43.020+00:00', fields: { order_status: 'EXPIRED' } },
  'order.cancelled': {
    timestamp: cancelledAt,
    fields: { order_status: 'CANCELLED', cancelled_at: cancelledAt },
  },
};

/** The record of {@link exampleOrder} after an event, or as it was created. */
export function exampleRecord(baseUrl: string, event?: EventType) {
  const { order_amount, order_currency, order_note, service_type } = exampleOrder;
  return {
    ...exampleResponse(baseUrl),
    mode: 'live',
    ...{ order_amount, order_currency, order_note, service_type },
    order_expires_at: expiresAt,
    ...(event === undefined ? {} : changes[event].fields),
  };
}

/** An event of {@link exampleOrder}. */
export function exampleEvent(baseUrl: string, type: EventType) {
  return {
    id: 'evt_4b1c0f6a2d9e4f7f8a3c5d6e7f809112',
    type,
    timestamp: changes[type].timestamp,
    data: exampleRecord(baseUrl, type),
  };
}

/** The `next_cursor` of the pages that the reference shows. */
export const exampleCursor = 'MTc5NTIwODUwMjE3Mi4x';
