import { parseAmount } from '@order-gateway/domain/money';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { GatewayError, GatewayNetworkError } from '../errors.ts';
import { orderChecksum } from '../signatures/order-checksum.ts';
import { createClient, type GatewayClient } from './client.ts';
import type { ClientOptions } from './request.ts';

const { order_checksum, ...order } = validOrderInput({ service_type: 'DIGITAL' as const });
const created = { service_order_id: 7, order_id: order.order_id, order_status: 'UN_PAID' };

/** A request as passed to `fetch`. */
interface Sent {
  readonly url: string;
  readonly init: RequestInit & { readonly body: string };
}

/** Returns a client that records its requests in `sent`. They get `responses` in turn, and the last one is repeated. */
function clientWith(responses: readonly (() => Response | Promise<Response>)[], options: Partial<ClientOptions> = {}) {
  const sent: Sent[] = [];
  const fetch = async (url: string | URL | Request, init: RequestInit = {}) => {
    sent.push({ url: String(url), init: init as Sent['init'] });
    return (responses[sent.length - 1] ?? responses.at(-1) ?? json(200, {}))();
  };
  const client = createClient({
    baseUrl: 'https://pay.example.com/shop/',
    clientId: 'app_1',
    clientSecret: 'sk_1',
    fetch,
    ...options,
  });
  return { client, sent };
}

function json(status: number, body: object, headers: Record<string, string> = {}): () => Response {
  return () => new Response(JSON.stringify(body), { status, headers });
}

/** Returns the error with which a call rejects, or a text if the call succeeds. */
function failureOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => 'it succeeded',
    (error: unknown) => error,
  );
}

const loseConnection = () => Promise.reject(new TypeError('fetch failed', { cause: new Error('read ECONNRESET') }));

describe('requests', () => {
  test('a call that waits for events has that much more time', async () => {
    const timeout = vi.spyOn(AbortSignal, 'timeout');
    const { client } = clientWith([json(200, { events: [] })], { timeoutMs: 2_000 });
    await client.listEvents({ waitSeconds: 20 });
    await client.listEvents();
    expect(timeout.mock.calls).toEqual([[22_000], [2_000]]);
    timeout.mockRestore();
  });

  test('createOrder sends the credentials, the checksum, and the amount with two decimals', async () => {
    const { client, sent } = clientWith([json(201, created)]);
    expect(await client.createOrder({ ...order, order_amount: '10' })).toEqual(created);
    const [{ url, init } = { url: '', init: { body: '' } }] = sent;
    expect([url, init.method]).toEqual(['https://pay.example.com/shop/order', 'POST']);
    expect(init.headers).toEqual({
      'content-type': 'application/json',
      prefer: 'handling=strict',
      'x-client-id': 'app_1',
      'x-client-secret': 'sk_1',
    });
    expect(init.body).toContain('"order_amount":10.00,');
    const checksum = await orderChecksum({ ...order, order_amount: 10 }, 'sk_1');
    expect(JSON.parse(init.body)).toEqual({ ...order, order_amount: 10, order_checksum: checksum });
  });

  test('a call with a body prefers strict handling, and a call without one states no preference', async () => {
    const { client, sent } = clientWith(Array.from({ length: 5 }, () => json(200, { queued: 0, has_more: false })));
    await client.createWebhookEndpoint({ url: 'https://shop.example.com' });
    await client.updateWebhookEndpoint('we_1', { status: 'disabled' });
    await client.redeliverFailedWebhooks('we_1', '2026-11-20T21:01:42Z');
    await client.updateBrand({ color: '#0b5fff' });
    await client.cancelOrder('order-1');
    const preferences = sent.map(({ init }) => Reflect.get(Object(init.headers), 'prefer'));
    expect(preferences).toEqual([...Array.from({ length: 4 }, () => 'handling=strict'), undefined]);
  });

  test('createOrder sends every amount in digits that the gateway reads as the same amount', async () => {
    await fc.assert(
      fc.asyncProperty(fc.bigInt({ min: 1n, max: 999_999_999_999_999n }), async (amount) => {
        const { client, sent } = clientWith([json(201, created)]);
        await client.createOrder({ ...order, order_amount: Number(amount) / 100 });
        const digits = /"order_amount":([^,]+),/.exec(sent[0]?.init.body ?? '')?.[1] ?? '';
        expect(parseAmount(digits)).toEqual({ ok: true, value: amount });
      }),
    );
  });

  test('createOrder sends nothing if the amount has more than two decimals', async () => {
    const { client, sent } = clientWith([json(201, created)]);
    await expect(client.createOrder({ ...order, order_amount: 0.1 + 0.2 })).rejects.toThrow(RangeError);
    expect(sent).toEqual([]);
  });

  test('createOrder sends a Date as order_expires_at', async () => {
    const { client, sent } = clientWith([json(201, created)]);
    await client.createOrder({ ...order, order_expires_at: new Date('2027-01-01T00:00:00Z') });
    expect(JSON.parse(sent[0]?.init.body ?? '').order_expires_at).toBe('2027-01-01T00:00:00.000Z');
  });

  class Price {
    readonly amount = 10;
  }
  const invalidDate = new Date('2026-13-45');
  test.each<[string, (client: GatewayClient) => Promise<unknown>]>([
    ['an invalid date', (client) => client.createOrder({ ...order, order_expires_at: invalidDate })],
    ['a Map', (client) => client.createOrder({ ...order, metadata: new Map([['cart', '17']]) as never })],
    ['a class instance', (client) => client.createOrder({ ...order, metadata: { price: new Price() } as never })],
    ['undefined in a map', (client) => client.createOrder({ ...order, metadata: { cart: undefined as never } })],
    ['NaN', (client) => client.createOrder({ ...order, metadata: { cart: Number.NaN as never } })],
    ['a bigint', (client) => client.createOrder({ ...order, metadata: { cart: 17n as never } })],
    ['a function', (client) => client.createOrder({ ...order, order_note: (() => 'note') as never })],
    ['an order with a getter', (client) => client.createOrder(Object.assign(new Price(), order) as never)],
    [
      'a hole in a list',
      (client) => client.createWebhookEndpoint({ url: 'https://a.example', event_types: new Array(1) }),
    ],
    ['a Map', (client) => client.updateWebhookEndpoint('we_1', new Map([['status', 'disabled']]) as never)],
    ['an invalid date', (client) => client.redeliverFailedWebhooks('we_1', invalidDate)],
    ['a Map', (client) => client.updateBrand(new Map([['color', '#0b5fff']]) as never)],
    ['a class instance', (client) => client.updateBrand({ color: new Price() as never })],
    ['a Map', async (client) => client.listOrders({ metadata: new Map([['cart', '17']]) as never }).next()],
    ['null in a filter', async (client) => client.listOrders({ metadata: { cart: null as never } }).next()],
    ['an empty text', async (client) => client.listOrders({ status: '' as never }).next()],
    ['an empty text', (client) => client.listEvents({ orderId: '' })],
    ['an empty list', (client) => client.listEvents({ types: [] })],
    ['an empty text', async (client) => client.listWebhookDeliveries('we_1', { orderId: '' }).next()],
    ['an invalid date', async (client) => client.listOrders({ createdFrom: invalidDate }).next()],
  ])('a request with %s is not sent', async (_value, call) => {
    const { client, sent } = clientWith([json(200, { ...created, orders: [], deliveries: [] })]);
    await expect(async () => call(client)).rejects.toThrow(/must be|invalid|Invalid/);
    expect(sent).toEqual([]);
  });

  test('getOrder with a payment id sends it in the query', async () => {
    const { client, sent } = clientWith([json(200, created)]);
    await client.getOrder({ paymentId: 'p/1 ?&é' });
    expect(sent.map(({ url, init }) => [init.method, url, init.body])).toEqual([
      ['GET', 'https://pay.example.com/shop/order?payment_id=p%2F1+%3F%26%C3%A9', null],
    ]);
  });

  test.each(['', '.', '..'])('getOrder rejects the order_id "%s", which a path cannot contain', async (orderId) => {
    const { client, sent } = clientWith([json(200, created)]);
    await expect(client.getOrder(orderId)).rejects.toThrow(RangeError);
    expect(sent).toEqual([]);
  });

  test('listOrders fetches the next page only when it is needed', async () => {
    const { client, sent } = clientWith([json(200, { orders: [{ order_id: 'c' }], next_cursor: 'x' })]);
    for await (const _ of client.listOrders()) break;
    expect(sent.map(({ url }) => url)).toEqual(['https://pay.example.com/shop/orders']);
  });

  test.each([
    [{ clientSecret: 'sk_1\n' }, 'clientSecret is missing or not printable ASCII'],
    [{ clientId: undefined as never }, 'clientId is missing or not printable ASCII'],
    [{ baseUrl: 'pay.example.com' }, 'baseUrl must begin with https:// or http://'],
    [{ baseUrl: 'localhost:8080' }, 'baseUrl must begin with https:// or http://'],
  ])('createClient rejects %j without repeating a secret', (options, message) => {
    expect(() => clientWith([], options)).toThrow(new TypeError(message));
  });
});

describe('errors', () => {
  test('a problem document becomes a GatewayError with its members', async () => {
    const errors = [{ field: 'order_amount', code: 'out_of_range', message: 'must be greater than 0' }];
    const problem = { code: 'invalid_order', detail: 'order_amount must be …', request_id: 'r1', errors };
    const { client, sent } = clientWith([json(400, problem)]);
    const error = await failureOf(client.createOrder(order));
    expect(error).toBeInstanceOf(GatewayError);
    expect({ ...Object(error), message: Object(error).message }).toEqual({
      name: 'GatewayError',
      code: 'invalid_order',
      status: 400,
      requestId: 'r1',
      errors,
      fields: [],
      retryAfterSeconds: undefined,
      outcomeUnknown: false,
      message: '400 invalid_order: order_amount must be …',
    });
    expect(sent).toHaveLength(1);
  });

  test.each([
    ['an error page', () => new Response('<h1>Forbidden</h1>', { status: 403 }), 403, false],
    [
      'a redirect',
      () => new Response(null, { status: 302, headers: { location: 'https://evil.example' } }),
      302,
      false,
    ],
    ['a success that is not JSON', () => new Response('<h1>Log in</h1>'), 200, true],
    ['JSON that is not an object', () => new Response('null'), 200, true],
  ])('%s from a proxy is reported with the code unknown', async (_, response, status, outcomeUnknown) => {
    const { client, sent } = clientWith([response]);
    await expect(client.createOrder(order)).rejects.toMatchObject({ code: 'unknown', status, outcomeUnknown });
    expect(sent.map(({ init }) => init.redirect)).toEqual(['manual']);
  });
});

describe('retries', () => {
  let waitsMs: (number | undefined)[];
  beforeEach(() => {
    waitsMs = [];
    vi.spyOn(Math, 'random').mockReturnValue(0.5);
    vi.spyOn(globalThis, 'setTimeout').mockImplementation((resume, ms) => {
      waitsMs.push(ms);
      queueMicrotask(resume);
      return undefined as never;
    });
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  test.each([
    ['a lost connection', loseConnection],
    ['408', json(408, { code: 'request_timeout' })],
    ['429', json(429, { code: 'rate_limited' })],
    ['500', json(500, { code: 'internal' })],
    ['502 of a proxy', () => new Response('<h1>Bad gateway</h1>', { status: 502 })],
    ['503', json(503, { code: 'unavailable' })],
    ['504', json(504, { code: 'deadline_exceeded' })],
  ])('after %s, the same order is sent again after half of the maximum wait', async (_, failure) => {
    const { client, sent } = clientWith([failure, json(201, created)]);
    expect(await client.createOrder(order)).toEqual(created);
    expect(waitsMs).toEqual([125]);
    expect(sent[1]?.init.body).toBe(sent[0]?.init.body);
  });

  test('the waits double and the fifth attempt is the last', async () => {
    const { client, sent } = clientWith([loseConnection]);
    const error = await failureOf(client.getOrder('x'));
    expect(error).toBeInstanceOf(GatewayNetworkError);
    expect(error).toMatchObject({ message: 'No response from the gateway: read ECONNRESET', outcomeUnknown: false });
    expect([sent.length, waitsMs]).toEqual([5, [125, 250, 500, 1_000]]);
  });

  test('with retries: 0, a request is sent once', async () => {
    const { client, sent } = clientWith([json(503, {})], { retries: 0 });
    await failureOf(client.getOrder('x'));
    expect(sent).toHaveLength(1);
  });

  test.each([
    ['seconds', () => '7'],
    ['a date', () => new Date(Date.now() + 7_000).toUTCString()],
  ])('the client waits for the Retry-After in %s, plus the random part', async (_, retryAfter) => {
    vi.setSystemTime('2026-11-22T20:00:00.000Z');
    const { client } = clientWith([
      json(429, { code: 'rate_limited' }, { 'retry-after': retryAfter() }),
      json(200, {}),
    ]);
    await client.getOrder('x');
    expect(waitsMs).toEqual([7_125]);
  });

  test('an error with a Retry-After above 30 seconds is thrown immediately', async () => {
    const { client, sent } = clientWith([json(503, { code: 'overloaded' }, { 'retry-after': '31' })]);
    const error = await failureOf(client.createOrder(order));
    expect(error).toMatchObject({ code: 'overloaded', retryAfterSeconds: 31, outcomeUnknown: false });
    expect(sent).toHaveLength(1);
  });

  test.each([
    [
      'createWebhookEndpoint',
      (client: GatewayClient) => client.createWebhookEndpoint({ url: 'https://shop.example.com' }),
    ],
    ['rotateWebhookSecret', (client: GatewayClient) => client.rotateWebhookSecret('we_1')],
    ['createClientSecret', (client: GatewayClient) => client.createClientSecret()],
  ])('%s is retried after a rejection, but not after an attempt that may have created a secret', async (_, call) => {
    const { client, sent } = clientWith([
      json(429, {}),
      json(503, { code: 'overloaded' }),
      loseConnection,
      json(200, {}),
    ]);
    expect(await failureOf(call(client))).toMatchObject({ outcomeUnknown: true });
    expect(sent).toHaveLength(3);
  });

  test('updateBrand sends the bytes of the logo in base64', async () => {
    const brand = { color: '#0b5fff' };
    const { client, sent } = clientWith([json(200, brand), json(200, brand), json(200, brand)]);
    expect(await client.updateBrand({ logo: Uint8Array.of(1, 128, 255), support_email: '' })).toEqual(brand);
    await client.updateBrand({ color: '#0b5fff' });
    expect(await client.getBrand()).toEqual(brand);
    expect(sent.map(({ url, init }) => [init.method, new URL(url).pathname, init.body])).toEqual([
      ['PATCH', '/shop/brand', '{"support_email":"","logo":"AYD/"}'],
      ['PATCH', '/shop/brand', '{"color":"#0b5fff"}'],
      ['GET', '/shop/brand', null],
    ]);
    const { buffer } = Uint8Array.of(1);
    await expect(client.updateBrand({ logo: buffer as unknown as Uint8Array })).rejects.toThrow(TypeError);
    expect(sent).toHaveLength(3);
  });

  test('deleteWebhookEndpoint resolves if an earlier attempt may have deleted the endpoint', async () => {
    const { client, sent } = clientWith([loseConnection, json(404, { code: 'not_found' })]);
    await client.deleteWebhookEndpoint('we_1');
    expect(sent.map(({ init }) => init.method)).toEqual(['DELETE', 'DELETE']);
    const { client: clientWithoutRetry } = clientWith([json(404, { code: 'not_found' })]);
    expect(await failureOf(clientWithoutRetry.deleteWebhookEndpoint('we_1'))).toMatchObject({ code: 'not_found' });
  });

  test.each([
    ['after a lost connection', [loseConnection, json(401, { code: 'unauthenticated' })], true],
    ['after unavailable', [json(503, { code: 'unavailable' }), json(409, {})], true],
    ['after overloaded', [json(503, { code: 'overloaded' })], false],
    ['after rate_limited', [json(429, { code: 'rate_limited' })], false],
    ['after internal', [json(500, { code: 'internal' })], true],
    ['after deadline_exceeded', [json(504, { code: 'deadline_exceeded' })], true],
  ])('%s, the error says whether the order may exist', async (_, responses, outcomeUnknown) => {
    const { client } = clientWith(responses);
    expect(await failureOf(client.createOrder(order))).toMatchObject({ outcomeUnknown });
    const { client: reader } = clientWith(responses);
    expect(await failureOf(reader.getOrder('x'))).toMatchObject({ outcomeUnknown: false });
  });
});
