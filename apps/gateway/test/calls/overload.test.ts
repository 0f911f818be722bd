import { constants } from 'node:http2';
import { type AccountId, createClientId, type Merchant } from '@order-gateway/domain/accounts';
import type { OrderStore } from '@order-gateway/domain/orders';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { expect, onTestFinished, test } from 'vitest';
import { createAdmission } from '../../src/calls/admission.ts';
import { credentials, type FixedDeps, fixedDeps, merchant } from '../helpers/fixed-deps.ts';
import { callHeaders, createOrderPath, lengthPrefixed, orderData, sendCall } from '../helpers/grpc/grpc-call.ts';
import { useSession } from '../helpers/grpc/grpc-servers.ts';
import { createMemoryLogger } from '../helpers/memory-logger.ts';
import { exchange, postHead } from '../helpers/raw-http.ts';
import { runGateway } from '../helpers/running-gateway.ts';
import { credentialHeaders, postOrder } from '../helpers/send-order.ts';
import { grpcServerOf, httpServerOf } from '../helpers/servers.ts';

test('a call over the rate limit is rejected in every protocol before its body arrives', async () => {
  const gateway = await runGateway({ rateLimit: 1 });
  const announced = ['content-length: 500', 'connection: close'];
  const overHttp = [
    postHead(gateway, '/order', ...announced),
    postHead(gateway, createOrderPath, ...announced),
    postHead(gateway, createOrderPath, ...announced).replace('application/json', 'application/proto'),
    postHead(gateway, createOrderPath, ...announced).replace('application/json', 'application/grpc-web+proto'),
  ];
  const session = useSession(gateway.grpcPort);
  // The first call uses up the limit for a second. On a slow machine, some of the next calls are made after that.
  const responses: string[] = [];
  const rejections = async () => {
    await (await postOrder(gateway)).text();
    responses.push(...(await Promise.all(overHttp.map((text) => exchange(gateway, text)))));
    const headers = { ...callHeaders, ...gateway.headers };
    const { trailers } = await sendCall(session, { headers, chunks: [], ends: false });
    responses.push(`gRPC ${trailers['grpc-status']}`);
    return responses;
  };
  await expect.poll(rejections).toContain('gRPC 8');
  await expect.poll(rejections).toContainEqual(expect.stringMatching(/^HTTP\/1.1 200 .*grpc-status: 8/s));
  const rejected = responses.filter((response) => response.startsWith('HTTP/1.1 429'));
  expect(rejected).toContainEqual(expect.stringContaining('application/problem+json'));
  expect(rejected).toContainEqual(expect.stringContaining('resource_exhausted'));
});

/** Runs both ports for two merchants, on a store in which each creation waits until the test lets it finish. */
async function runFullGateway(callsMax: number, activeMax = 2 * callsMax, replaced: Partial<FixedDeps> = {}) {
  const { logger } = createMemoryLogger();
  const other = { ...credentials, clientId: createClientId((count) => new Uint8Array(count).fill(8)) };
  const merchants = new Map<string | undefined, Merchant>([
    [credentials.clientId, merchant],
    [other.clientId, { ...merchant, id: 8 as AccountId }],
  ]);
  const pending: (() => void)[] = [];
  const fixed = fixedDeps(logger);
  const create: OrderStore['create'] = async (order, timeoutMs) => {
    await new Promise<void>((resolve) => pending.push(resolve));
    return fixed.store.create(order, timeoutMs);
  };
  const limits = { callsMax, callsMaxWhenSlow: callsMax, orderAgeMaxMs: 0, activeMax, activeMin: 1 };
  const deps: FixedDeps = {
    ...fixed,
    store: { ...fixed.store, create },
    authenticate: async ({ clientId }) => ({ ok: true, value: merchants.get(clientId) ?? merchant }),
    admission: createAdmission(limits, () => 0),
    ...replaced,
  };
  const [http, grpc] = [httpServerOf(deps), grpcServerOf(deps)];
  const [httpPort, grpcPort] = await Promise.all([http.listen(0, '127.0.0.1'), grpc.listen(0, '127.0.0.1')]);
  onTestFinished(async () => void (await Promise.all([http.close(), grpc.close()])));
  const session = useSession(grpcPort);
  let orders = 0;
  const newId = () => `order-${++orders}`;
  return {
    other,
    pending,
    finishAll: () => pending.splice(0).forEach((finish) => void finish()),
    /** Starts a call over gRPC, and cancels it while it waits for the store. */
    cancel: async () => {
      const stream = session.request({ ':method': 'POST', ':path': createOrderPath, ...callHeaders });
      stream.on('error', () => {});
      stream.end(lengthPrefixed(orderData(newId())));
      await expect.poll(() => pending.length).toBe(1);
      stream.close(constants.NGHTTP2_CANCEL);
    },
    json: async (client: typeof credentials) => {
      const order = validOrderInput({ order_id: newId() });
      const response = await postOrder({ url: `http://127.0.0.1:${httpPort}`, credentials: client }, order);
      return response.status;
    },
    grpc: async (client: typeof credentials, extraHeaders: Readonly<Record<string, string>> = {}) => {
      const headers = { ...callHeaders, ...credentialHeaders(client), ...extraHeaders };
      const { trailers } = await sendCall(session, {
        headers,
        chunks: [lengthPrefixed(orderData(newId()))],
        ends: true,
      });
      return Number(trailers['grpc-status']);
    },
  };
}

test('if one merchant uses all capacity, another merchant still gets its share immediately', async () => {
  const gateway = await runFullGateway(8);
  const { pending, json, grpc, other, finishAll } = gateway;
  const heavy = [...Array.from({ length: 4 }, () => json(credentials)), ...[1, 2, 3, 4].map(() => grpc(credentials))];
  await expect.poll(() => pending.length).toBe(8);
  expect([await json(credentials), await grpc(credentials)]).toEqual([503, 14]);
  const ordinary = [json(other), grpc(other), json(other), grpc(other)];
  await expect.poll(() => pending.length).toBe(12);
  expect([await json(other), await grpc(credentials)]).toEqual([503, 14]);
  finishAll();
  expect(await Promise.all([...heavy, ...ordinary])).toEqual([201, 201, 201, 201, 0, 0, 0, 0, 201, 0, 201, 0]);
  const later = json(credentials);
  await expect.poll(() => pending.length).toBe(1);
  finishAll();
  expect(await later).toBe(201);
});

test.each([
  ['overloaded', 503, 14],
  ['rate_limited', 429, 8],
])('the error %s is sent after a pause', async (code, status, grpcStatus) => {
  const paused: (() => void)[] = [];
  const rejectionPause = () => new Promise<void>((resolve) => paused.push(resolve));
  const rateLimit = () => (code === 'rate_limited' ? 1 : undefined);
  const { json, grpc } = await runFullGateway(0, 1, { rejectionPause, rateLimit });
  const statuses: number[] = [];
  const rejected = [json, grpc].map((send) => send(credentials).then((received) => statuses.push(received)));
  await expect.poll(() => paused.length).toBe(2);
  expect(statuses).toEqual([]);
  for (const resume of paused) resume();
  await Promise.all(rejected);
  expect(statuses.toSorted()).toEqual([status, grpcStatus].toSorted());
});

test('a cancelled call frees its capacity', async () => {
  const { pending, json, cancel, finishAll } = await runFullGateway(1);
  await cancel();
  const statuses: number[] = [];
  const sendAnother = async () => {
    void json(credentials).then((status) => statuses.push(status));
    await expect.poll(() => pending.length + statuses.length).toBeGreaterThan(1);
    return pending.length;
  };
  await expect.poll(sendAnother).toBe(2);
  finishAll();
  await expect.poll(() => statuses).toContain(201);
});

test("if a merchant's calls use all slots, its further calls wait for one until their deadline, but not another merchant's call", async () => {
  const { pending, json, grpc, other, finishAll } = await runFullGateway(8, 2);
  const active = [json(credentials), grpc(credentials)];
  await expect.poll(() => pending.length).toBe(2);
  expect(await grpc(credentials, { 'grpc-timeout': '50m' })).toBe(4);
  const waiting = [json(credentials), grpc(credentials)];
  const ordinary = json(other);
  await expect.poll(() => pending.length).toBe(3);
  const statuses = Promise.all([...active, ...waiting, ordinary]);
  // The waiting calls start only after other calls have ended.
  finishAll();
  await expect.poll(() => pending.length).toBe(2);
  finishAll();
  expect(await statuses).toEqual([201, 0, 201, 0, 201]);
});
