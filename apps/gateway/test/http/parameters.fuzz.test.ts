import { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import type { OrderStatus } from '@order-gateway/contract/gateway/v1/order_pb';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { rpcClients, rpcErrorOf } from '../helpers/grpc/rpc-clients.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { createOrder } from '../helpers/send-order.ts';

const gateway = useGateway();
let orderToken: string;
beforeAll(async () => {
  orderToken = (await createOrder(gateway, 'paid')).order_token;
});

const cursorOf = (text: string) => Buffer.from(text).toString('base64url');

const number = fc.oneof(fc.bigInt().map(String), fc.double().map(String));
const time = fc.oneof(
  fc
    .tuple(
      fc.constantFrom(0, 1, 1969, 1970, 2026, 9999, 10_000),
      fc.constantFrom('Z', '+14:00', '-23:59', '+00:00', ''),
    )
    .map(([year, offset]) => `${String(year).padStart(4, '0')}-12-31T23:59:59.999${offset}`),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
);
const cursor = fc.oneof(
  fc.tuple(fc.bigInt(), fc.bigInt()).map(([time, id]) => cursorOf(`${time}.${id}`)),
  fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 16n }), fc.nat()).map(([time, id]) => cursorOf(`${time}.${id}`)),
  fc
    .tuple(fc.bigInt({ min: 0n }), fc.stringMatching(/^[0-9a-f]{32}$/))
    .map(([id, hex]) => cursorOf(`${id}.evt_${hex}`)),
);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 140 }),
  fc.constantFrom('UN_PAID', 'PAID', 'EXPIRED', '%00', '..', '/', 'null', '\u0000', '\ud800'),
);

/**
 * Generates one of these parameters at a time, because a second one that is invalid would prevent the first from
 * reaching the database.
 */
function singleParameter<Values extends Record<string, fc.Arbitrary<unknown>>>(values: Values) {
  const single = Object.entries(values).map(([name, arbitrary]) => arbitrary.map((value) => ({ [name]: value })));
  return fc.oneof(...single) as fc.Arbitrary<{
    [Name in keyof Values]?: Values[Name] extends fc.Arbitrary<infer T> ? T : never;
  }>;
}

test('no parameter of a list, a feed or a path causes an internal error', async () => {
  const list = singleParameter({
    status: text,
    currency: text,
    created_from: time,
    created_to: time,
    limit: number,
    cursor,
  });
  const feed = singleParameter({ limit: number, cursor });
  const request = fc.oneof(
    { weight: 3, arbitrary: list.map((query) => ['GET', `orders?${new URLSearchParams(query)}`] as const) },
    feed.map((query) => ['GET', `events?${new URLSearchParams(query)}`] as const),
    text.map((id) => ['POST', `order/${encodeURIComponent(id.toWellFormed())}/cancel`] as const),
    text.map((id) => ['GET', `order/${encodeURIComponent(id.toWellFormed())}`] as const),
    text.map((id) => ['GET', `payment/${encodeURIComponent(id.toWellFormed())}`] as const),
  );
  const sending = fc.asyncProperty(request, async ([method, path]) => {
    const response = await fetch(`${gateway.url}/${path}`, { method, headers: gateway.headers });
    await response.text();
    expect(response.status, path).toBeLessThan(500);
  });
  await fc.assert(sending, { numRuns: 400 });
});

test('no request to list orders or record a payment causes an internal error', async () => {
  const [lists, checkouts] = [rpcClients(OrderService, gateway), rpcClients(CheckoutService, gateway)];
  const int32 = fc.integer({ min: -2_147_483_648, max: 2_147_483_647 });
  const list = singleParameter({
    status: int32.map((status) => status as OrderStatus),
    limit: int32,
    currency: text,
    createdFrom: time,
    createdTo: time,
    cursor,
  });
  const payment = singleParameter({
    orderToken: text,
    paymentId: text,
    paidAt: time,
    orderAmount: fc.oneof(fc.double(), fc.constantFrom(Number.NaN, 1e308, -0, 12.345)),
    orderCurrency: text,
  });
  const { order_amount: orderAmount, order_currency: orderCurrency } = validOrderInput();
  const paid = { orderToken, orderAmount, orderCurrency, paymentId: 'p', paidAt: new Date().toISOString() };
  const sending = fc.asyncProperty(list, payment, fc.nat(3), async (filter, changes, protocol) => {
    const [orders, checkout] = [lists[protocol], checkouts[protocol]];
    if (orders === undefined || checkout === undefined) throw new Error('there is no such client');
    const errors = [
      await rpcErrorOf(orders.client.listOrders(wellFormed(filter), { headers: gateway.headers })),
      await rpcErrorOf(
        checkout.client.recordPayment(wellFormed({ ...paid, ...changes }), { headers: gateway.checkout.headers }),
      ),
    ];
    expect(errors.map(({ reason }) => reason)).not.toContain('internal');
  });
  await fc.assert(sending, { numRuns: 200 });
});

/** Characters, encoded characters, encoded bytes that are not text, and invalid encodings. */
const anyPiece = fc.oneof(
  fc.stringMatching(/^[!$-.:;=@-Z_a-z~0-9/]{0,8}$/),
  fc.string({ unit: 'binary', maxLength: 8 }).map((text) => encodeURIComponent(text.toWellFormed())),
  fc.integer({ min: 0, max: 255 }).map((byte) => `%${byte.toString(16).padStart(2, '0')}`),
  fc.constantFrom('%', '%2', '%zz', '%25', '%2F', '%00', '..%2f', '?', '??', '%E2%80%AE'),
);

test.each(['/order/', '/payment/'])('every path after %s gets 404, and causes no internal error', async (start) => {
  const anyPath = fc.array(anyPiece, { maxLength: 12 }).map((pieces) => pieces.join(''));
  await fc.assert(
    fc.asyncProperty(anyPath, async (path) => {
      const address = new URL(gateway.url + start + path);
      // `URL` resolves dot segments, which can lead out of this path.
      fc.pre(address.pathname.startsWith(start));
      const response = await fetch(address, { headers: gateway.headers });
      await response.text();
      expect(response.status, path).toBe(404);
      expect(gateway.errors, path).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

/** Replaces lone surrogates in strings, because clients can't send them in Protobuf. */
function wellFormed<Message extends object>(message: Message): Message {
  const entries = Object.entries(message).map(([name, value]) => [
    name,
    typeof value === 'string' ? value.toWellFormed() : value,
  ]);
  return Object.fromEntries(entries);
}
