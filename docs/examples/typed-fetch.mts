// Creates an order and looks it up again with fetch and generated types. README.md shows how to make
// order-gateway.d.ts. Node.js 22.18 or newer. For Node.js 20, compile this file as README.md shows, and run
// typed-fetch.mjs.
// Usage: BASE_URL=http://localhost:8080 CLIENT_ID=app_... CLIENT_SECRET=sk_... ORDER_ID=web-1001 node typed-fetch.mts
import type { components } from './order-gateway.d.ts';

type Schemas = components['schemas'];

const { BASE_URL = '', CLIENT_ID = '', CLIENT_SECRET = '', ORDER_ID = '' } = process.env;

async function call<Answer>(path: string, order?: Schemas['CreateOrderRequest']): Promise<Answer> {
  const response = await fetch(`${BASE_URL}${path}`, {
    method: order === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json', 'x-client-id': CLIENT_ID, 'x-client-secret': CLIENT_SECRET },
    body: order === undefined ? null : JSON.stringify(order),
    signal: AbortSignal.timeout(10_000),
  });
  if (response.ok) return (await response.json()) as Answer;
  // Decide by the code. After 503 and 504, send the same order again.
  const problem = (await response.json()) as Schemas['Problem'];
  throw new Error(`${problem.code}: ${problem.detail}`);
}

const { payment_link } = await call<Schemas['CreateOrderResponse']>('/order', {
  order_id: ORDER_ID,
  order_amount: 10.0,
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
  order_checksum: 'none',
  return_url: 'https://shop.example.com/thanks',
});
process.stdout.write(`The customer pays at ${payment_link}\n`);
process.stdout.write(`${JSON.stringify(await call<Schemas['Order']>(`/order/${encodeURIComponent(ORDER_ID)}`))}\n`);
