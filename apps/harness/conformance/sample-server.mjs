import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';

// A small server that fails some of the fixtures on purpose. It serves only `POST /order`, validates only that
// `order_id` is a string, and replays an order without comparing its fields.
// Usage: CLIENT_ID=... CLIENT_SECRET=... node sample-server.mjs PORT

const { CLIENT_ID, CLIENT_SECRET } = process.env;
const orders = new Map();

const send = (response, status, body, headers = {}) => {
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store', ...headers });
  response.end(JSON.stringify(body));
};

const fail = (response, status, code, title) => {
  const type = `http://localhost/docs/errors#${code}`;
  const request_id = response.getHeader('x-request-id');
  send(response, status, { type, title, status, detail: title, code, request_id });
};

const server = createServer(async (request, response) => {
  response.setHeader('x-request-id', randomBytes(12).toString('base64url'));
  const chunks = await Array.fromAsync(request);
  if (request.method !== 'POST' || request.url !== '/order') return fail(response, 404, 'not_found', 'Not found');
  const { 'x-client-id': id, 'x-client-secret': secret } = request.headers;
  if (id !== CLIENT_ID || secret !== CLIENT_SECRET)
    return fail(response, 401, 'unauthenticated', 'Invalid credentials');
  let order;
  try {
    order = JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return fail(response, 400, 'malformed_json', 'Malformed JSON');
  }
  if (typeof order?.order_id !== 'string') return fail(response, 400, 'invalid_order', 'Invalid order');
  const earlier = orders.get(order.order_id);
  if (earlier !== undefined) return send(response, 200, earlier, { 'idempotent-replayed': 'true' });
  const token = randomBytes(16).toString('hex');
  const created = {
    service_order_id: orders.size + 1,
    order_id: order.order_id,
    order_token: token,
    created_at: new Date().toISOString().replace('Z', '+00:00'),
    order_status: 'UN_PAID',
    payment_link: `http://${request.headers.host}/payment/${token}`,
  };
  orders.set(order.order_id, created);
  return send(response, 201, created);
});

server.listen(Number(process.argv[2]), '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${server.address().port}\n`);
});
