import { setTimeout as sleep } from 'node:timers/promises';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { Health, HealthCheckResponse_ServingStatus } from '@order-gateway/contract/health/v1/health_pb';
import { startTestServer } from '@order-gateway/dev-postgres/testing';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { grpcClient, rpcClients, rpcErrorOf, rpcNames } from '../../helpers/grpc/rpc-clients.ts';
import { type RunningGateway, runGateway } from '../../helpers/running-gateway.ts';
import { orderMessage, postOrder } from '../../helpers/send-order.ts';

// Errors that no fixture can provoke. Each test causes one in a real gateway and checks it in every protocol.
// The fixtures show all other errors.

let orders = 0;

const newOrderId = () => `failure-${++orders}`;

interface ReceivedError {
  readonly protocol: string;
  readonly code: string | undefined;
  /** Whether the response says when to retry, with a delay in the expected range. */
  readonly hasRetryAfter: boolean;
}

/** The longest pause before a retry in these tests: up to one second, plus up to two seconds of jitter. */
const retryAfterMaxMs = 3_000;

const isRetryAfter = (ms: number) => ms > 0 && ms <= retryAfterMaxMs;

async function errorInJson(gateway: RunningGateway): Promise<ReceivedError> {
  const response = await postOrder(gateway, validOrderInput({ order_id: newOrderId() }));
  const { code, status } = (await response.json()) as { code?: string; status?: number };
  expect(status).toBe(response.status);
  const hasRetryAfter = isRetryAfter(Number(response.headers.get('retry-after')) * 1_000);
  return { protocol: `json ${response.status}`, code, hasRetryAfter };
}

/** Sends one order in every protocol at the same time, and returns the errors. */
async function errorsInEveryProtocol(gateway: RunningGateway): Promise<ReceivedError[]> {
  const { headers } = gateway;
  const overRpc = rpcClients(OrderService, gateway).map(async ({ name: protocol, client }) => {
    const { code, reason, retryDelayMs } = await rpcErrorOf(
      client.createOrder(orderMessage(newOrderId()), { headers }),
    );
    return { protocol: `${protocol} ${code}`, code: reason, hasRetryAfter: isRetryAfter(retryDelayMs ?? 0) };
  });
  return Promise.all([errorInJson(gateway), ...overRpc]);
}

/** Returns the expected errors of {@link errorsInEveryProtocol}. */
function everywhere(code: string, httpStatus: number, grpcStatus: number, hasRetryAfter = false): ReceivedError[] {
  const rpc = rpcNames.map((name) => `${name} ${grpcStatus}`);
  return [`json ${httpStatus}`, ...rpc].map((protocol) => ({ protocol, code, hasRetryAfter }));
}

test('a merchant over its rate limit: rate_limited in every protocol, with Retry-After, and the log names the merchant', async () => {
  // With a limit below one call per second, no call is ever allowed.
  const gateway = await runGateway({ rateLimit: 0.5 });
  const { calls } = gateway;
  expect(await errorsInEveryProtocol(gateway)).toEqual(everywhere('rate_limited', 429, 8, true));
  const limited = () => calls.filter(({ code }) => code === 'rate_limited');
  const protocols = () => limited().map(({ protocol }) => protocol);
  await expect.poll(() => protocols().toSorted()).toEqual(['connect', 'connect', 'grpc', 'grpc-web', 'json']);
  const clientId = `client_id = '${gateway.credentials.clientId}'`;
  const [merchant] = await runQuery(gateway.databaseUrl, `select id::int from accounts where ${clientId}`);
  expect(new Set(limited().map(({ merchant_id }) => merchant_id))).toEqual(new Set([merchant?.id]));
});

test('a full queue: overloaded in every protocol, with Retry-After', async () => {
  const gateway = await runGateway({ orders: { waitingMax: 0 } });
  expect(await errorsInEveryProtocol(gateway)).toEqual(everywhere('overloaded', 503, 14, true));
});

test.each([
  ['a missing table', 'alter table orders rename to orders_gone'],
  ['a missing sequence of order ids', 'alter sequence service_order_id_blocks rename to blocks_gone'],
])('%s: unavailable in every protocol, with the cause in the log only', async (_, statement) => {
  const gateway = await runGateway();
  await runQuery(gateway.databaseUrl, statement);
  expect(await errorsInEveryProtocol(gateway)).toEqual(everywhere('unavailable', 503, 14));
  const body = await (await postOrder(gateway)).text();
  expect(body).not.toMatch(/relation|_gone|insert|42P01|at .*\.ts/i);
  expect(gateway.outages).toContainEqual(expect.objectContaining({ reason: expect.stringContaining('run `migrate`') }));
});

test('a stopped database: unavailable in every protocol, before and after the cached credentials expire', async () => {
  const server = await startTestServer();
  const gateway = await runGateway({ server });
  await (await postOrder(gateway)).text();
  await server.stop();
  expect(await errorsInEveryProtocol(gateway)).toEqual(everywhere('unavailable', 503, 14));
  await sleep(1_000);
  expect(await errorsInEveryProtocol(gateway)).toEqual(everywhere('unavailable', 503, 14));
  const probe = async (path: string) => {
    const { status, headers } = await fetch(`${gateway.url}/health/${path}`);
    return [status, headers.get('cache-control')];
  };
  expect(await probe('ready')).toEqual([503, 'no-store']);
  expect((await grpcClient(Health, gateway).check({})).status).toBe(HealthCheckResponse_ServingStatus.NOT_SERVING);
  expect(await probe('live')).toEqual([200, 'no-store']);
  // The log reports the cause once, and has each call with a 5xx response at error level.
  expect(gateway.outages.map(({ msg, reason }) => [msg, typeof reason])).toEqual([
    ['database lost', 'string'],
    ['not ready for orders', 'string'],
  ]);
  const unavailable = gateway.calls.filter(({ code }) => code === 'unavailable');
  expect(new Set(unavailable.map(({ level }) => level))).toEqual(new Set(['error']));
});

test('while the table of orders is locked, orders that wait for a batch: deadline_exceeded; orders in a batch: unavailable', async () => {
  const gateway = await runGateway({ orders: { batchMax: 1 }, patience: 1 });
  await (await postOrder(gateway)).text();
  const sql = postgres(gateway.databaseUrl, { max: 1 });
  onTestFinished(() => sql.end());
  await sql.unsafe('begin; lock table orders in exclusive mode');
  // A batch holds one order and fails after two seconds, so the last of ten orders is still waiting at its deadline.
  const sendMany = async () => {
    const before = Array.from({ length: 10 }, () => errorInJson(gateway));
    const [last, ...first] = await Promise.all([errorsInEveryProtocol(gateway), ...before]);
    return { last, first: new Set(first.map(({ code }) => code)) };
  };
  const last = everywhere('deadline_exceeded', 504, 4);
  // On a busy machine, the last orders can be sent later than the others.
  await expect.poll(sendMany).toEqual({ last, first: new Set(['unavailable', 'deadline_exceeded']) });
});
