import { type Client, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { CheckoutService } from '@gateway/contract/gateway/v1/checkout_service_pb';
import { OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import { ErrorInfoSchema } from '@gateway/contract/google/rpc/error_details_pb';
import type { Credentials } from '@gateway/domain/credentials';
import { type FailureCode, failures } from '@gateway/domain/failure';
import type { MerchantMode } from '@gateway/domain/merchant';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { createMerchant } from '@gateway/postgres/merchant-admin';
import postgres from 'postgres';
import { beforeAll, describe, expect, test } from 'vitest';
import { openApi } from '../src/pages/openapi.ts';
import { jsonFailures, type OperationId, type RpcMethod, rpcFailures } from '../src/pages/operation-failures.ts';
import { useGateway } from './running-gateway.ts';
import { answerOf, credentialHeaders, orderMessage, postOrder } from './send-order.ts';

// The reference lists the errors of each operation. Here each operation returns those errors, and there is no other.

/** Errors of the load, the network and the database, which other tests cause. */
const ofCircumstances: readonly FailureCode[] = [
  ...(['request_timeout', 'body_too_large', 'rate_limited', 'overloaded'] as const),
  ...(['unavailable', 'deadline_exceeded', 'internal'] as const),
];

const gateway = useGateway();
let testCredentials: Credentials;
let orders: Client<typeof OrderService>;
let checkout: Client<typeof CheckoutService>;
beforeAll(async () => {
  testCredentials = await createMerchant(gateway.databaseUrl, 'Lab', 'test');
  const transport = createGrpcTransport({ baseUrl: gateway.grpcUrl });
  orders = createClient(OrderService, transport);
  checkout = createClient(CheckoutService, transport);
  for (const orderId of ['open', 'paid', 'cancelled', 'expired']) {
    await postOrder(gateway, validOrderInput({ order_id: orderId }));
  }
  await checkout.recordPayment(await paymentOf('paid'), asCheckout());
  await send('POST', '/order/cancelled/cancel');
  const sql = postgres(gateway.databaseUrl, { max: 1 });
  await sql`update orders set order_expires_at = now() - interval '25 hours' where order_id = 'expired'`;
  await sql.end({ timeout: 1 });
});

const unknownClient = { clientId: `app_${'0'.repeat(24)}`, clientSecret: `sk_${'0'.repeat(43)}` };

function send(method: string, path: string, credentials: Credentials = gateway.credentials): Promise<Response> {
  return fetch(gateway.url + path, {
    method,
    headers: { ...credentialHeaders(credentials), accept: 'application/json' },
    signal: AbortSignal.timeout(30_000),
  });
}

function create(overrides: object, headers: Record<string, string> = {}): Promise<Response> {
  return postOrder(gateway, validOrderInput({ order_id: 'open', ...overrides }), headers);
}

/** Sends the form of the buttons for the order of a merchant that is live or a test one. */
async function simulate(mode: MerchantMode, form: Record<string, string>, headers: Record<string, string> = {}) {
  const credentials = mode === 'live' ? gateway.credentials : testCredentials;
  const { order_token } = await answerOf(await postOrder({ url: gateway.url, credentials }));
  return fetch(`${gateway.url}/payment/${order_token}/simulate`, {
    method: 'POST',
    headers: { accept: 'application/json', ...headers },
    body: new URLSearchParams(form),
    signal: AbortSignal.timeout(30_000),
  });
}

type JsonCalls = Partial<Record<FailureCode, () => Promise<Response>>>;

/** The errors of every operation with credentials. */
function credentialErrors(method: string, path: string): JsonCalls {
  return {
    unauthenticated: () => send(method, path, unknownClient),
    permission_denied: () => send(method, path, gateway.checkoutCredentials),
  };
}

/** A call for each error of each operation. */
const jsonCalls: Readonly<Record<OperationId, JsonCalls>> = {
  createOrder: {
    malformed_json: () => postOrder(gateway, '{'),
    invalid_order: () => create({ order_amount: 0 }),
    checksum_mismatch: () => create({ order_checksum: 'v1=00' }),
    order_id_conflict: () => create({ order_amount: 11 }),
    unsupported_media_type: () => create({}, { 'content-type': 'text/plain' }),
    unauthenticated: () => create({}, credentialHeaders(unknownClient)),
    permission_denied: () => create({}, credentialHeaders(gateway.checkoutCredentials)),
  },
  getOrder: { not_found: () => send('GET', '/order/unknown'), ...credentialErrors('GET', '/order/open') },
  cancelOrder: {
    not_found: () => send('POST', '/order/unknown/cancel'),
    order_already_paid: () => send('POST', '/order/paid/cancel'),
    order_expired: () => send('POST', '/order/expired/cancel'),
    ...credentialErrors('POST', '/order/open/cancel'),
  },
  listOrders: { invalid_request: () => send('GET', '/orders?limit=0'), ...credentialErrors('GET', '/orders') },
  listEvents: { invalid_request: () => send('GET', '/events?cursor=x'), ...credentialErrors('GET', '/events') },
  getPaymentPage: { not_found: () => send('GET', '/payment/unknown') },
  simulatePayment: {
    invalid_request: () => simulate('test', { outcome: 'maybe' }),
    permission_denied: () => simulate('test', { outcome: 'pay' }, { origin: 'https://other.example.com' }),
    not_found: () => simulate('live', { outcome: 'pay' }),
  },
};

describe.each(Object.entries(jsonCalls))('the documented errors of %s', (operationId, calls) => {
  test('are those that it returns', () => {
    const listed: readonly FailureCode[] = jsonFailures[operationId as OperationId];
    expect(listed.filter((code) => !ofCircumstances.includes(code)).toSorted()).toEqual(Object.keys(calls).toSorted());
  });

  test.each(Object.entries(calls))('%s', async (code, call) => {
    const response = await call();
    expect(await response.json()).toMatchObject({ code });
    const operation = Object.values(openApi(gateway.baseUrl).paths)
      .flatMap((methods) => Object.values(methods))
      .find((one) => one.operationId === operationId);
    expect(operation?.responses[response.status]?.description).toContain(`\`${code}\`: `);
  });
});

type Options = { readonly headers: Record<string, string> };

const asMerchant = (): Options => ({ headers: credentialHeaders(gateway.credentials) });
const asCheckout = (): Options => ({ headers: credentialHeaders(gateway.checkoutCredentials) });
const asStranger = (): Options => ({ headers: credentialHeaders(unknownClient) });

/** A payment of one of the orders, as it should be. */
async function paymentOf(orderId: string, paymentId = `pay_${orderId}`) {
  const { order_token } = await answerOf(await create({ order_id: orderId }));
  const paidAt = new Date().toISOString();
  const { order_amount: orderAmount, order_currency: orderCurrency } = validOrderInput();
  return { orderToken: order_token, paymentId, paidAt, orderAmount, orderCurrency };
}

type RpcCalls = Partial<Record<FailureCode, () => Promise<unknown>>>;

const byId = (value: string) => ({ order: { case: 'orderId' as const, value } });

const rpcCalls: Readonly<Record<RpcMethod, RpcCalls>> = {
  'OrderService/CreateOrder': {
    invalid_order: () => orders.createOrder(orderMessage('open', { order_currency: 'XXX' }), asMerchant()),
    checksum_mismatch: () => orders.createOrder(orderMessage('open', { order_checksum: 'v1=00' }), asMerchant()),
    order_id_conflict: () => orders.createOrder(orderMessage('open', { order_note: 'Another' }), asMerchant()),
    unauthenticated: () => orders.createOrder(orderMessage('open'), asStranger()),
    permission_denied: () => orders.createOrder(orderMessage('open'), asCheckout()),
  },
  'OrderService/GetOrder': {
    invalid_order: () => orders.getOrder({}, asMerchant()),
    not_found: () => orders.getOrder(byId('unknown'), asMerchant()),
    unauthenticated: () => orders.getOrder(byId('open'), asStranger()),
    permission_denied: () => orders.getOrder(byId('open'), asCheckout()),
  },
  'OrderService/CancelOrder': {
    invalid_order: () => orders.cancelOrder({}, asMerchant()),
    not_found: () => orders.cancelOrder(byId('unknown'), asMerchant()),
    order_already_paid: () => orders.cancelOrder(byId('paid'), asMerchant()),
    order_expired: () => orders.cancelOrder(byId('expired'), asMerchant()),
    unauthenticated: () => orders.cancelOrder(byId('open'), asStranger()),
    permission_denied: () => orders.cancelOrder(byId('open'), asCheckout()),
  },
  'OrderService/ListOrders': {
    invalid_request: () => orders.listOrders({ limit: 101 }, asMerchant()),
    unauthenticated: () => orders.listOrders({}, asStranger()),
    permission_denied: () => orders.listOrders({}, asCheckout()),
  },
  'CheckoutService/ResolvePaymentLink': {
    not_found: () => checkout.resolvePaymentLink({ orderToken: 'unknown' }, asCheckout()),
    unauthenticated: () => checkout.resolvePaymentLink({}, asStranger()),
    permission_denied: () => checkout.resolvePaymentLink({}, asMerchant()),
  },
  'CheckoutService/RecordPayment': {
    invalid_request: async () => checkout.recordPayment({ ...(await paymentOf('open')), paidAt: 'now' }, asCheckout()),
    not_found: async () => checkout.recordPayment({ ...(await paymentOf('open')), orderToken: 'x' }, asCheckout()),
    order_already_paid: async () => checkout.recordPayment(await paymentOf('paid', 'another'), asCheckout()),
    order_cancelled: async () => checkout.recordPayment(await paymentOf('cancelled'), asCheckout()),
    order_expired: async () => checkout.recordPayment(await paymentOf('expired'), asCheckout()),
    payment_mismatch: async () =>
      checkout.recordPayment({ ...(await paymentOf('open')), orderCurrency: 'JPY' }, asCheckout()),
    unauthenticated: () => checkout.recordPayment({}, asStranger()),
    permission_denied: () => checkout.recordPayment({}, asMerchant()),
  },
};

describe.each(Object.entries(rpcCalls))('the documented errors of %s', (method, calls) => {
  test('are those that it returns, and each has a gRPC status', () => {
    const listed: readonly FailureCode[] = rpcFailures[method as RpcMethod];
    expect(listed.filter((code) => !ofCircumstances.includes(code)).toSorted()).toEqual(Object.keys(calls).toSorted());
    for (const code of listed) expect(failures[code].grpcStatus, code).not.toBeNull();
  });

  test.each(Object.entries(calls))('%s', async (code, call) => {
    const error = await call().then(
      () => undefined,
      (reason: unknown) => ConnectError.from(reason),
    );
    expect(error?.findDetails(ErrorInfoSchema)[0]?.reason).toBe(code);
  });
});

test('every RPC of the contract has its errors in the reference', () => {
  const methods = [OrderService, CheckoutService].flatMap(({ name, methods }) =>
    methods.map((method) => `${name}/${method.name}`),
  );
  expect(Object.keys(rpcFailures)).toEqual(methods);
});
