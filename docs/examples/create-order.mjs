// Creates an order and looks it up again. The client package computes the checksum, and retries with the same order_id.
// Node.js 20 or newer, with the package @order-gateway/client (see README.md).
// Usage: BASE_URL=http://localhost:8080 CLIENT_ID=app_... CLIENT_SECRET=sk_... ORDER_ID=web-1001 node create-order.mjs
import { createClient, GatewayError } from '@order-gateway/client';

const { BASE_URL, CLIENT_ID, CLIENT_SECRET, ORDER_ID } = process.env;

const client = createClient({ baseUrl: BASE_URL, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET });

try {
  const { payment_link } = await client.createOrder({
    order_id: ORDER_ID,
    order_amount: '10.00',
    order_currency: 'USD',
    order_note: 'Two tickets',
    service_type: 'DIGITAL',
    customer_name: 'Ada Lovelace',
    customer_email: 'ada@example.com',
    customer_phone: '+44 20 7946 0018',
    customer_address_line1: '12 St James Square',
    customer_address_city: 'London',
    customer_address_state: 'London',
    customer_address_country: 'United Kingdom',
    customer_address_postal_code: 'SW1Y 4JH',
    return_url: 'https://shop.example.com/thanks',
  });
  process.stdout.write(`The customer pays at ${payment_link}\n`);
  process.stdout.write(`${JSON.stringify(await client.getOrder(ORDER_ID))}\n`);
} catch (error) {
  if (!(error instanceof GatewayError)) throw error;
  // Decide by error.code. If error.outcomeUnknown is true, send the same order again.
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
