// Creates an order with a checksum and looks it up again. Node.js 18 or newer, nothing to install.
// Usage: BASE_URL=http://localhost:8080 CLIENT_ID=app_... CLIENT_SECRET=sk_... ORDER_ID=web-1001 node create-order.mjs
import { createHmac } from 'node:crypto';

const { BASE_URL, CLIENT_ID, CLIENT_SECRET, ORDER_ID } = process.env;

const fieldNames = [
  ...['order_id', 'order_amount', 'order_currency', 'order_note', 'service_type'],
  ...['customer_name', 'customer_email', 'customer_phone'],
  ...['customer_address_line1', 'customer_address_line2', 'customer_address_city', 'customer_address_state'],
  ...['customer_address_country', 'customer_address_postal_code', 'return_url'],
];

/** v1= and the HMAC of the fields in the interface's order, the amount with two decimals, an absent field empty. */
function checksumOf(order) {
  const text = fieldNames
    .map((name) => (name === 'order_amount' ? order[name].toFixed(2) : (order[name] ?? '')))
    .map((value) => value.replaceAll(/[\\|]/g, '\\$&'))
    .join('|');
  return `v1=${createHmac('sha256', CLIENT_SECRET).update(text, 'utf8').digest('hex')}`;
}

/** Sends a request, up to 5 times if the gateway is unavailable. Safe, as one order_id never creates a second order. */
async function call(path, options = {}, attempt = 1) {
  const response = await fetch(`${BASE_URL}${path}`, {
    ...options,
    headers: { 'content-type': 'application/json', 'x-client-id': CLIENT_ID, 'x-client-secret': CLIENT_SECRET },
    signal: AbortSignal.timeout(10_000),
  }).catch((error) => {
    if (attempt === 5) throw error;
  });
  const body = await response?.json();
  if (response?.ok) return body;
  if (response !== undefined && (attempt === 5 || ![429, 503, 504].includes(response.status))) {
    throw new Error(`${response.status} ${body.code}: ${body.detail}`);
  }
  const seconds = Number(response?.headers.get('retry-after')) || Math.random() * 2 ** attempt;
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  return call(path, options, attempt + 1);
}

const order = {
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
  return_url: 'https://shop.example.com/thanks',
};

const created = await call('/order', {
  method: 'POST',
  body: JSON.stringify({ ...order, order_checksum: checksumOf(order) }),
});
process.stdout.write(`${JSON.stringify(created)}\n`);

const found = await call(`/order/${encodeURIComponent(ORDER_ID)}`);
process.stdout.write(`${JSON.stringify(found)}\n`);
