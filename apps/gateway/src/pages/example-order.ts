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
