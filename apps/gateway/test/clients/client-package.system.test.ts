import { execFile, spawn } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import {
  type ClientOptions,
  type CreatedOrder,
  createClient,
  GatewayError,
  type NewOrder,
  type OrderFilter,
  orderChecksum,
} from '@order-gateway/client';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitLimitMs } from '../../../../tools/test-limits.ts';
import { listen } from '../../../../tools/test-resources.ts';
import { runGateway, useGateway } from '../helpers/running-gateway.ts';
import { postJson, postOrder, postPayment } from '../helpers/send-order.ts';

const gateway = useGateway({ baseUrl: 'https://pay.example.com/gateway' });

function clientOf(options: Partial<ClientOptions> = {}) {
  return createClient({ baseUrl: gateway.url, ...gateway.credentials, ...options });
}

/** Returns a valid order without a checksum, which the client adds. */
function orderOf(orderId: string, overrides: Partial<NewOrder> = {}): NewOrder {
  const { order_checksum, ...order } = validOrderInput({ order_id: orderId, service_type: 'DIGITAL' as const });
  return { ...order, ...overrides };
}

/** Returns the GatewayError with which a call fails. */
async function errorOf(call: Promise<unknown>): Promise<GatewayError> {
  const error = await call.catch((cause: unknown) => cause);
  if (error instanceof GatewayError) return error;
  throw new Error('no GatewayError', { cause: error });
}

describe('@order-gateway/client with a gateway:', () => {
  test('createOrder creates an order once, with a valid checksum', async () => {
    const client = clientOf();
    const order = orderOf('création | 1\\2');
    const created = await client.createOrder(order);
    expect(created).toMatchObject({ order_id: order.order_id, order_status: 'UN_PAID' });
    expect(await client.createOrder({ ...order, order_amount: '1249.50' })).toEqual(created);
    const record = await client.getOrder(order.order_id);
    expect(record).toMatchObject({ ...created, mode: 'live', order_amount: 1249.5, order_currency: 'EUR' });
    const checksum = await orderChecksum(order, gateway.credentials.clientSecret);
    const changed = await postOrder(gateway, { ...order, order_amount: 1, order_checksum: checksum });
    expect(await changed.json()).toMatchObject({ code: 'checksum_mismatch' });
  });

  test('errors contain the code, the invalid or conflicting fields, and the request id', async () => {
    const client = clientOf();
    const invalid = await errorOf(client.createOrder(orderOf('invalid', { order_amount: 0, order_note: '' })));
    expect(invalid).toMatchObject({ code: 'invalid_order', status: 400, outcomeUnknown: false });
    expect(invalid.errors.map(({ field, code }) => [field, code])).toEqual([
      ['order_amount', 'out_of_range'],
      ['order_note', 'blank'],
    ]);
    expect(gateway.calls.find(({ request_id }) => request_id === invalid.requestId)?.code).toBe('invalid_order');
    await client.createOrder(orderOf('conflict'));
    const conflict = await errorOf(client.createOrder(orderOf('conflict', { order_note: 'changed' })));
    expect(conflict).toMatchObject({ code: 'order_id_conflict', status: 409, fields: ['order_note'] });
    const codes = [
      client.getOrder('unknown'),
      clientOf({ clientSecret: `sk_${'0'.repeat(43)}` }).getOrder('x'),
      clientOf(gateway.checkout.credentials).getOrder('x'),
      client.listOrders({ limit: 0 }).next(),
      client.listEvents({ cursor: 'x' }),
    ].map(async (call) => (await errorOf(call)).code);
    expect(await Promise.all(codes)).toEqual([
      ...['not_found', 'unauthenticated', 'permission_denied', 'invalid_request', 'invalid_request'],
    ]);
  });

  test('calls above the rate limit are retried', async () => {
    const limited = await runGateway({ rateLimit: 1 });
    const client = createClient({ baseUrl: limited.url, ...limited.credentials });
    const calls = [1, 2, 3].map((index) => client.createOrder(orderOf(`limited-${index}`)));
    expect(await Promise.all(calls)).toHaveLength(3);
    expect(limited.calls.some(({ code }) => code === 'rate_limited')).toBe(true);
  });

  test('an order is created once, even if its response is lost twice', async () => {
    let forwarded = 0;
    const proxy = createServer(async (request, response) => {
      const forwardedResponse = await postJson(gateway, request.url ?? '', await text(request));
      forwarded += 1;
      if (forwarded <= 2) request.socket.destroy();
      else response.writeHead(forwardedResponse.status).end(await forwardedResponse.text());
    });
    const client = clientOf({ baseUrl: `http://127.0.0.1:${await listen(proxy)}` });
    const callsBefore = gateway.calls.length;
    const created = await client.createOrder(orderOf('lost-response'));
    expect(gateway.calls.slice(callsBefore).map(({ code }) => code)).toEqual(['created', 'replayed', 'replayed']);
    expect(await clientOf().getOrder('lost-response')).toMatchObject(created);
  });

  test('cancelOrder can be repeated, and fails once the order is paid', async () => {
    const client = clientOf();
    await client.createOrder(orderOf('cancel/../me?'));
    const cancelled = await client.cancelOrder('cancel/../me?');
    expect(cancelled).toMatchObject({ order_status: 'CANCELLED', cancelled_at: expect.any(String) });
    expect(await client.cancelOrder('cancel/../me?')).toEqual(cancelled);
    expect(await client.getOrder('cancel/../me?')).toEqual(cancelled);
    const { order_token } = await client.createOrder(orderOf('paid'));
    expect((await postPayment(gateway.checkout, order_token)).status).toBe(200);
    expect((await errorOf(client.cancelOrder('paid'))).code).toBe('order_already_paid');
    expect((await errorOf(client.cancelOrder('unknown'))).code).toBe('not_found');
  });

  test('listOrders returns every order that matches the filter once, newest first', async () => {
    const client = clientOf();
    const created: CreatedOrder[] = [];
    for (const index of [0, 1, 2, 3, 4, 5, 6]) created.unshift(await client.createOrder(orderOf(`list-${index}`)));
    await client.cancelOrder('list-3');
    const list = async (filter: OrderFilter) => {
      const orderIds: string[] = [];
      for await (const { order_id } of client.listOrders(filter)) orderIds.push(order_id);
      return orderIds.filter((id) => id.startsWith('list-'));
    };
    const idsOf = (orders: readonly CreatedOrder[]) => orders.map(({ order_id }) => order_id);
    expect(await list({ limit: 3 })).toEqual(idsOf(created));
    expect(await list({ status: 'UN_PAID', limit: 2 })).toEqual(
      idsOf(created.filter(({ order_id }) => order_id !== 'list-3')),
    );
    expect(await list({ currency: 'EUR' })).toEqual(idsOf(created));
    expect(await list({ currency: 'USD' })).toEqual([]);
    // Several orders can have been created in the same millisecond.
    const middle = created[3]?.created_at ?? '';
    expect(await list({ createdFrom: middle })).toEqual(
      idsOf(created.filter(({ created_at }) => created_at >= middle)),
    );
    expect(await list({ createdTo: new Date(middle) })).toEqual(
      idsOf(created.filter(({ created_at }) => created_at < middle)),
    );
  });

  test('listEvents returns every event once if each call passes the cursor of the previous page', async () => {
    const client = clientOf((await gateway.newMerchant()).credentials);
    let { next_cursor: cursor } = await client.listEvents({ limit: 100 });
    const ids = ['event-1', 'event-2', 'event-3'];
    for (const id of ids) await client.createOrder(orderOf(id));
    for (const id of ids) await client.cancelOrder(id);
    const received: unknown[] = [];
    for (let page = 0; page < 2; page += 1) {
      const { events, next_cursor } = await client.listEvents({ cursor, limit: 2 });
      cursor = next_cursor;
      received.push(...events.map(({ type, data }) => [type, data.order_id, data.order_status]));
    }
    expect(received).toEqual(ids.map((id) => ['order.cancelled', id, 'CANCELLED']));
    const { events } = await client.listEvents({ limit: 1 });
    expect(Object.keys(events[0] ?? {})).toEqual(['id', 'type', 'timestamp', 'data']);
  });
});

describe("the programs of the client's README", () => {
  /** A folder from which Node.js resolves the package for the programs. */
  const folder = join(import.meta.dirname, '../../node_modules/.cache/client-readme');
  const fromSource = '--conditions=@order-gateway/source';
  let programs: string[];
  beforeAll(async () => {
    const readme = await readFile(join(import.meta.dirname, '../../../../packages/client/README.md'), 'utf8');
    programs = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code ?? '');
    await mkdir(folder, { recursive: true });
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  /** Writes the README's program that calls the given function to a file. Returns the path. */
  async function writeProgram(calls: string): Promise<string> {
    const code = programs.find((program) => program.includes(`await ${calls}(`));
    if (code === undefined) throw new Error(`no program calls ${calls}`);
    const path = join(folder, `${calls}.mjs`);
    await writeFile(path, code);
    return path;
  }

  test('the program that creates an order prints its link', async () => {
    const program = await writeProgram('client.createOrder');
    const { clientId: CLIENT_ID, clientSecret: CLIENT_SECRET } = gateway.credentials;
    const env = { PATH: process.env.PATH, BASE_URL: gateway.url, CLIENT_ID, CLIENT_SECRET };
    const { stdout } = await promisify(execFile)(process.execPath, [fromSource, program], {
      env,
      timeout: waitLimitMs,
    });
    expect(stdout.trim()).toBe((await clientOf().getOrder('web-1001')).payment_link);
  });

  test('the webhook receiver accepts a signed event and rejects a changed one', async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const program = await writeProgram('verifyWebhook');
    const receiver = spawn(process.execPath, [fromSource, program], {
      env: { PATH: process.env.PATH, SIGNING_SECRET: secret, PORT: '0' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const lines = createInterface({ input: receiver.stdout })[Symbol.asyncIterator]();
      const [, port] = /port: (\d+)/.exec((await lines.next()).value ?? '') ?? [];
      const event = { id: 'evt_1', type: 'order.paid', data: { order_id: 'web-1', order_status: 'PAID' } };
      const body = JSON.stringify(event);
      const signedAt = new Date();
      const headers = {
        'webhook-id': event.id,
        'webhook-timestamp': String(Math.floor(signedAt.getTime() / 1_000)),
        'webhook-signature': new Webhook(secret).sign(event.id, signedAt, body),
      };
      const deliver = async (content: string) =>
        (await fetch(`http://127.0.0.1:${port}`, { method: 'POST', headers, body: content })).status;
      expect(await deliver(body)).toBe(204);
      expect((await lines.next()).value).toBe('evt_1 order.paid web-1 PAID');
      expect(await deliver(`${body} `)).toBe(400);
    } finally {
      receiver.kill();
    }
  });
});
