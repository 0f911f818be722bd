import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import {
  Health,
  type HealthCheckResponse,
  HealthCheckResponse_ServingStatus,
} from '@order-gateway/contract/health/v1/health_pb';
import { childrenOf } from '@order-gateway/dev-postgres/testing/processes';
import type { Credentials } from '@order-gateway/domain/accounts';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import {
  endProcesses,
  type GatewayProcess,
  isAlive,
  newClusterDir,
  newDatabase,
  postgresPid,
  runProgram,
  startOnNewDatabase,
  startProcess,
  stopGracefully,
} from '../helpers/gateway-process.ts';
import { grpcClient } from '../helpers/grpc/rpc-clients.ts';
import { credentialHeaders, orderMessage } from '../helpers/send-order.ts';

// A gateway with two worker processes behind both ports. The first three tests share it, and the third one stops it.

let dataDir: string;
let gateway: GatewayProcess;
let credentials: Credentials;
beforeAll(async () => {
  dataDir = await newClusterDir();
  gateway = await startProcess({ DATA_DIR: dataDir, WORKERS: '2', DRAIN_DELAY_MS: '500' });
  credentials = await gateway.demoCredentials();
});
afterAll(endProcesses);

const indexes = [0, 1, 2, 3];

/** Returns the process ids of a gateway's workers. */
const workersOf = ({ child }: GatewayProcess) => childrenOf(child.pid ?? 0);

/** Returns a function that creates orders, all on the same new connection. */
function newConnection() {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return async (orderId: string, sendBody: Promise<void> = Promise.resolve()) => {
    const outgoing = request(`${gateway.url}/order`, {
      agent,
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-request-id': orderId, ...credentialHeaders(credentials) },
    });
    outgoing.flushHeaders();
    const responded = once(outgoing, 'response');
    await sendBody;
    outgoing.end(JSON.stringify(validOrderInput({ order_id: orderId })));
    const [response] = await responded;
    return { status: response.statusCode, order: JSON.parse(await text(response)) };
  };
}

const newConnections = () => indexes.map(newConnection);

/** Creates an order on each connection, and returns the responses. */
function createOn(connections: ReturnType<typeof newConnections>, name: string, sendBody?: Promise<void>) {
  return Promise.all(connections.map((create, index) => create(`${name}-${index}`, sendBody)));
}

/** Returns the numbers of the workers that served the calls of {@link createOn}. */
function workersThatServed(name: string): Promise<number[]> {
  const lineOf = (index: number) => gateway.lines.find((line) => line.includes(`"request_id":"${name}-${index}"`));
  return Promise.all(
    indexes.map(async (index) => {
      await expect.poll(() => lineOf(index)).toBeDefined();
      return JSON.parse(lineOf(index) ?? '').worker;
    }),
  );
}

const { SERVING, NOT_SERVING } = HealthCheckResponse_ServingStatus;

/** Watches the health of both workers, each on its own connection. The returned function gets their next statuses. */
function watchHealth(started: GatewayProcess): () => Promise<HealthCheckResponse_ServingStatus[]> {
  const watches = [0, 1].map(() => grpcClient(Health, started).watch({})[Symbol.asyncIterator]());
  return async () => {
    const results = await Promise.all(watches.map((watch) => watch.next()));
    return results.map(({ value }) => (value as HealthCheckResponse).status);
  };
}

const scrape = async () => (await fetch(gateway.metricsUrl)).text();

const bothAreUp = 'order_gateway_worker_up{worker="1"} 1\norder_gateway_worker_up{worker="2"} 1\n';

test('connections to both ports are divided among the workers, and one page has the metrics of all workers', async () => {
  const connections = newConnections();
  const viaHttp = await createOn(connections, 'http');
  const viaGrpc = await Promise.all(
    indexes.map((index) => {
      const headers = { ...credentialHeaders(credentials), 'x-request-id': `grpc-${index}` };
      return grpcClient(OrderService, gateway).createOrder(orderMessage(`grpc-${index}`), { headers });
    }),
  );
  expect(new Set(await workersThatServed('http'))).toEqual(new Set([1, 2]));
  expect(new Set(await workersThatServed('grpc'))).toEqual(new Set([1, 2]));
  const ids = [...viaHttp.map(({ order }) => order.service_order_id), ...viaGrpc.map((order) => order.serviceOrderId)];
  expect(new Set(ids.map(String)).size).toBe(8);
  const replayed = await createOn(connections.toReversed(), 'http');
  expect(replayed).toEqual(viaHttp.map(({ order }) => ({ status: 200, order })));

  const page = await scrape();
  const counts = [
    ...page.matchAll(/^order_gateway_call_duration_seconds_count\{.*"CreateOrder".*,worker="[12]"\} (\d+)$/gm),
  ];
  // The last term is for the order that the start creates for its banner.
  expect(counts.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(4 + 4 + 4 + 1);
  expect(page).toContain(bothAreUp);
  expect(page.match(/^# TYPE order_gateway_memory_bytes /gm)).toHaveLength(1);
});

test('a worker that is killed is replaced, and only its own connections are lost', async () => {
  const connections = newConnections();
  await createOn(connections, 'before');
  // Waits for the log lines before it kills the worker, because unwritten lines would be lost.
  const before = await workersThatServed('before');
  const [pid = Number.NaN] = workersOf(gateway);
  process.kill(pid, 'SIGKILL');
  const lineWith = (message: string) => gateway.lines.find((line) => line.includes(`"msg":"${message}"`));
  await expect.poll(() => lineWith('worker ended')).toContain('"signal":"SIGKILL"');
  const killed: number = JSON.parse(lineWith('worker ended') ?? '').worker;
  // A client whose connection was lost opens a new one, which the other worker serves.
  expect((await createOn(connections, 'after')).map(({ status }) => status)).toEqual([201, 201, 201, 201]);
  const after = await workersThatServed('after');
  expect(after.filter((_, index) => before[index] !== killed)).toEqual(before.filter((worker) => worker !== killed));

  await expect.poll(() => lineWith('worker replaced')).toContain(`"worker":${killed}`);
  await createOn(newConnections(), 'replaced');
  expect(new Set(await workersThatServed('replaced'))).toEqual(new Set([1, 2]));
  expect(await scrape()).toContain(bothAreUp);
});

test('SIGTERM, even if workers get it too, drains every worker, stops PostgreSQL and ends with 0', async ({ skip }) => {
  const processes = [await postgresPid(dataDir), ...workersOf(gateway)];
  const sendBodies = Promise.withResolvers<void>();
  const inFlight = createOn(newConnections(), 'in-flight', sendBodies.promise);
  const nextStatuses = watchHealth(gateway);
  expect(await nextStatuses()).toEqual([SERVING, SERVING]);
  await stopGracefully(gateway.child, skip, {
    async whileStopping() {
      for (const pid of processes.slice(1)) process.kill(pid, 'SIGTERM');
      expect(await nextStatuses()).toEqual([NOT_SERVING, NOT_SERVING]);
      sendBodies.resolve();
      expect((await inFlight).map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    },
  });
  // A process stays listed until the system has reaped it.
  await expect.poll(() => processes.filter(isAlive)).toEqual([]);
});

test.each([
  ['is killed', 'SIGKILL', null, '500'],
  ['gets a second signal', 'SIGTERM', 1, '600000'],
] as const)('the workers drain and end when the primary process %s', async (_, signal, code, DRAIN_DELAY_MS) => {
  const started = await startOnNewDatabase({ WORKERS: '2', DRAIN_DELAY_MS });
  const workers = workersOf(started);
  const nextStatuses = watchHealth(started);
  expect(await nextStatuses()).toEqual([SERVING, SERVING]);
  started.child.kill(signal);
  expect(await nextStatuses()).toEqual([NOT_SERVING, NOT_SERVING]);
  started.child.kill(signal);
  expect(await started.exited).toBe(code);
  await expect.poll(() => workers.filter(isAlive)).toEqual([]);
});

test('if the workers fail to start, the error of one of them is reported', async () => {
  const { databaseUrl } = await newDatabase();
  const files = { TLS_CERT_FILE: '/no/cert.pem', TLS_KEY_FILE: '/no/key.pem' };
  expect(await runProgram('src/main.ts', [], { WORKERS: '2', DATABASE_URL: databaseUrl, ...files })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^TLS_CERT_FILE [^\n]+ENOENT[^\n]+\n$/),
  });
});
