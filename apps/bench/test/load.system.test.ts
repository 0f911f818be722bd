import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { createTestDatabase } from '@order-gateway/dev-postgres/testing';
import { expect, onTestFinished, test } from 'vitest';
import { missing, mustSkip } from '../../../tools/skip-if-missing.ts';
import { type Contender, noServer } from '../src/contenders.ts';
import { connect } from '../src/database.ts';
import { sendLoad } from '../src/load/send-load.ts';
import { measure } from '../src/measure/measure.ts';

const merchant = { id: 1, clientId: 'app_1', clientSecret: 'sk_1' };
const options = { concurrency: 8, seconds: 1, signal: new AbortController().signal };

/** Starts a gRPC server that responds with the status that `onOrder` resolves to. */
async function grpcServer(onOrder: (orderId: string) => string | Promise<string>): Promise<Contender> {
  const server = createServer().on('stream', async (stream: ServerHttp2Stream) => {
    stream.on('error', () => {});
    const message = Buffer.concat(await stream.toArray());
    const status = await onOrder(fromBinary(CreateOrderRequestSchema, message.subarray(5)).orderId ?? '');
    if (stream.destroyed) return;
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status }));
    stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.end(Buffer.alloc(5));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { name: 'test', protocol: 'grpc', databaseUrl: '', merchant, ...noServer, port };
}

test('each gRPC call creates a new order, and error statuses count as failed', async () => {
  const seen: string[] = [];
  const contender = await grpcServer((orderId) => (seen.push(orderId) % 5 === 0 ? '3' : '0'));
  const { created, failed } = await sendLoad(contender, options);
  expect(created).toBeGreaterThan(0);
  expect(failed).toBeGreaterThan(0);
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.length).toBeGreaterThanOrEqual(created + failed);
});

test('on a schedule, a call that ends after the run is measured with its full latency', async () => {
  // A call is scheduled every 20 ms. Order 51 is the first one that is measured, and the last quarter of the calls is
  // slow.
  const contender = await grpcServer((orderId) => (Number(orderId.slice(-3)) > 75 ? sleep(1_500, '0') : '0'));
  const { created, failed, p99Ms } = await sendLoad(contender, { ...options, rate: 50 });
  // By rounding, the call at the end of the measured second can count too.
  expect(created).toBeGreaterThanOrEqual(50);
  expect(failed).toBe(0);
  expect(p99Ms).toBeGreaterThan(1_400);
});

test('measure rejects if the database lacks orders that were reported as created', async () => {
  const { url: databaseUrl, drop } = await createTestDatabase();
  onTestFinished(drop);
  await using sql = connect(databaseUrl);
  await sql`create table orders (merchant_id bigint)`;
  const contender = await grpcServer(() => '0');
  const run = measure({ ...contender, databaseUrl }, options);
  await expect(run).rejects.toThrow(/^test created \d+ orders, but the database has 0 of them$/);
});

test.skipIf(mustSkip('broken connections under wrk', missing('wrk')))(
  'wrk counts broken connections as failed',
  async () => {
    const counts = { responses: 0, breaks: 0 };
    const server = createHttpServer((request, response) => {
      request.resume().on('end', () => {
        const isBroken = (counts.responses + counts.breaks) % 5 === 4;
        counts[isBroken ? 'breaks' : 'responses'] += 1;
        if (isBroken) request.socket.destroy();
        else response.writeHead(201).end('{}');
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const contender: Contender = { name: 'test', protocol: 'json', databaseUrl: '', merchant, ...noServer, port };
    const { created, failed } = await sendLoad(contender, options);
    expect(failed).toBeGreaterThan(0);
    // wrk does not count what is in flight when it ends.
    for (const [counted, made] of [
      [created, counts.responses],
      [failed, counts.breaks],
    ] as const) {
      expect(counted).toBeGreaterThanOrEqual(made - options.concurrency);
      expect(counted).toBeLessThanOrEqual(made);
    }
  },
);
