import { ConnectError } from '@connectrpc/connect';
import { CheckoutService } from '@gateway/contract/gateway/v1/checkout_service_pb';
import { OrderService, type OrderStatus } from '@gateway/contract/gateway/v1/order_service_pb';
import { ErrorInfoSchema } from '@gateway/contract/google/rpc/error_details_pb';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rpcClients } from './rpc-clients.ts';
import { answerOf, credentialHeaders, postOrder, type RunningGateway, runGateway } from './running-gateway.ts';

let gateway: RunningGateway;
let orderToken: string;
beforeAll(async () => {
  gateway = await runGateway();
  orderToken = (await answerOf(await postOrder(gateway, validOrderInput()))).order_token;
});
afterAll(() => gateway?.close());

const own = () => credentialHeaders(gateway.credentials);
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
  fc.tuple(fc.bigInt(), fc.bigInt()).map(([one, other]) => cursorOf(`${one}.${other}`)),
  fc.tuple(fc.bigInt({ min: 0n, max: 10n ** 16n }), fc.nat()).map(([one, other]) => cursorOf(`${one}.${other}`)),
  fc
    .tuple(fc.bigInt({ min: 0n }), fc.stringMatching(/^[0-9a-f]{32}$/))
    .map(([id, hex]) => cursorOf(`${id}.evt_${hex}`)),
);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 140 }),
  fc.constantFrom('UN_PAID', 'PAID', 'EXPIRED', '%00', '..', '/', 'null', '\u0000', '\ud800'),
);
const value = fc.oneof(number, time, cursor, text);

test('no parameter of a list, a feed or a path is an internal error', async () => {
  const query = fc.record(
    { status: value, created_from: value, created_to: value, limit: value, cursor: value },
    { requiredKeys: [] },
  );
  const request = fc.oneof(
    query.map((parameters) => ['GET', `orders?${new URLSearchParams(parameters)}`] as const),
    query.map((parameters) => ['GET', `events?${new URLSearchParams(parameters)}`] as const),
    value.map((id) => ['POST', `order/${encodeURIComponent(id.toWellFormed())}/cancel`] as const),
    value.map((id) => ['GET', `order/${encodeURIComponent(id.toWellFormed())}`] as const),
    value.map((id) => ['GET', `payment/${encodeURIComponent(id.toWellFormed())}`] as const),
  );
  const sending = fc.asyncProperty(request, async ([method, path]) => {
    const response = await fetch(`${gateway.url}/${path}`, { method, headers: own() });
    expect([path, response.status, await response.text()]).toEqual([
      path,
      expect.toSatisfy(isOfTheClient),
      expect.anything(),
    ]);
  });
  await fc.assert(sending, { numRuns: 600 });
});

test('no message of a list or a payment is an internal error', async () => {
  const [lists, checkouts] = [rpcClients(OrderService, gateway), rpcClients(CheckoutService, gateway)];
  const list = fc.record(
    {
      status: fc.integer({ min: -2_147_483_648, max: 2_147_483_647 }).map((number) => number as OrderStatus),
      limit: fc.integer({ min: -2_147_483_648, max: 2_147_483_647 }),
      ...{ createdFrom: value, createdTo: value, cursor: value },
    },
    { requiredKeys: [] },
  );
  const payment = fc.record(
    {
      orderToken: fc.oneof(fc.constant(orderToken), value),
      orderAmount: fc.oneof(fc.double(), fc.constantFrom(Number.NaN, 1e308, -0, 12.345)),
      ...{ paymentId: value, paidAt: value, orderCurrency: fc.oneof(fc.constant('EUR'), value) },
    },
    { requiredKeys: [] },
  );
  const reasonOf = async (call: Promise<unknown>): Promise<string | undefined> => {
    const error = await call.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    return error instanceof ConnectError ? error.findDetails(ErrorInfoSchema)[0]?.reason : undefined;
  };
  const sending = fc.asyncProperty(list, payment, fc.nat(3), async (filter, paid, which) => {
    const [orders, checkout] = [lists[which], checkouts[which]];
    const reasons = [
      await reasonOf(orders?.client.listOrders(wellFormed(filter), { headers: own() }) ?? Promise.resolve()),
      await reasonOf(
        checkout?.client.recordPayment(wellFormed(paid), { headers: credentialHeaders(gateway.checkoutCredentials) }) ??
          Promise.resolve(),
      ),
    ];
    expect(reasons).not.toContain('internal');
  });
  await fc.assert(sending, { numRuns: 300 });
});

function isOfTheClient(status: number): boolean {
  return status < 500;
}

/** Clients can't send a lone surrogate in Protobuf. */
function wellFormed<Message extends object>(message: Message): Message {
  const entries = Object.entries(message).map(([name, one]) => [
    name,
    typeof one === 'string' ? one.toWellFormed() : one,
  ]);
  return Object.fromEntries(entries);
}
