import { setTimeout as sleep } from 'node:timers/promises';
import { fromJson, toBinary } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema } from '@gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { type GrpcConnection, type GrpcConnectionOptions, openGrpcConnection } from './grpc-connection.ts';
import { type LoadOptions, type LoadResult, percentile, settlingSeconds } from './load.ts';

export interface GrpcLoadOptions extends LoadOptions {
  /** Calls a second, on a schedule of its own; absent: as many as are answered. */
  readonly rate?: number;
  /** Sends one order over and over. */
  readonly replays?: boolean;
}

const connectionsMax = 4;
const numberDigits = 10;
const tickMs = 1;
/** The deadline that calls tell is 5 s. */
const answersMaxMs = 6_000;

/** Loads a gRPC door and tells what came of it. Run as a program, it takes its options as JSON in its first argument. */
export async function sendGrpcLoad(options: GrpcLoadOptions): Promise<LoadResult> {
  const { concurrency, seconds, rate } = options;
  const message = messages(options);
  const latencies: number[] = [];
  let okTrailers: Buffer | undefined;
  let failed = 0;
  let countsFrom = rate === undefined ? 0 : Number.POSITIVE_INFINITY;
  let isOver = false;
  const connections: GrpcConnection[] = [];
  for (let index = 0; index < Math.min(connectionsMax, concurrency); index += 1) {
    const connection = openGrpcConnection({
      port: options.port,
      headers: {
        ':authority': `127.0.0.1:${options.port}`,
        ':method': 'POST',
        ':path': createOrderPath,
        ':scheme': 'http',
        ...callHeaders(options.credentials),
      },
      ...message,
      onAnswer(trailers, latencyMs) {
        // The first answer is taken for a good one; the bench counts the rows that were stored.
        okTrailers ??= Buffer.from(trailers);
        if (!trailers.equals(okTrailers)) failed += 1;
        else if (performance.now() - latencyMs >= countsFrom) latencies.push(latencyMs);
        if (!isOver && rate === undefined) connection.send(1);
      },
      onBroken(reason) {
        if (isOver) return;
        process.stderr.write(`${reason}\n`);
        process.exit(1);
      },
    });
    connections.push(connection);
  }
  const pacing = rate === undefined ? startAll(connections, concurrency) : pace(connections, rate);
  if (rate !== undefined) await sleep(settlingSeconds * 1_000);
  const startedAt = performance.now();
  countsFrom = startedAt;
  await sleep(seconds * 1_000);
  clearInterval(pacing);
  const durationMs = performance.now() - startedAt;
  // Calls under way at the end are the slow ones: a p99 without them would be too good.
  if (rate !== undefined) failed += await unansweredAfter(connections);
  isOver = true;
  for (const connection of connections) connection.close();
  const sorted = Float64Array.from(latencies).sort();
  return {
    answers: latencies.length,
    failed,
    durationMs,
    p50Ms: percentile(sorted, 50),
    p99Ms: percentile(sorted, 99),
  };
}

/** Waits for the answers to what was sent, as long as a call's deadline and a little longer, and gives how many did not come. */
async function unansweredAfter(connections: readonly GrpcConnection[]): Promise<number> {
  const givenUpAt = performance.now() + answersMaxMs;
  const left = () => connections.reduce((sum, { unanswered }) => sum + unanswered, 0);
  while (left() > 0 && performance.now() < givenUpAt) await sleep(tickMs);
  return left();
}

function startAll(connections: readonly GrpcConnection[], concurrency: number): undefined {
  connections.forEach((connection, index) => {
    const share = Math.floor((concurrency + connections.length - 1 - index) / connections.length);
    connection.send(share);
  });
  return undefined;
}

function pace(connections: readonly GrpcConnection[], rate: number): NodeJS.Timeout {
  const startedAt = performance.now();
  let sent = 0;
  return setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) * rate) / 1_000);
    for (; sent < due; sent += 1) connections[sent % connections.length]?.send(1);
  }, tickMs);
}

export const createOrderPath = '/gateway.v1.OrderService/CreateOrder';

/** What a call of grpc-js 1.14 with a deadline and the two credentials has in its header, in its order: each field costs. */
export function callHeaders({ clientId, clientSecret }: LoadOptions['credentials']): Record<string, string> {
  return {
    'x-client-id': clientId,
    'x-client-secret': clientSecret,
    'grpc-accept-encoding': 'identity,deflate,gzip',
    'accept-encoding': 'identity',
    'grpc-timeout': '5000m',
    'user-agent': 'grpc-node-js/1.14.7',
    'content-type': 'application/grpc',
    te: 'trailers',
  };
}

/** Messages that differ in the number at the end of their order_id only. */
function messages({ run, replays }: GrpcLoadOptions): Pick<GrpcConnectionOptions, 'message' | 'renew'> {
  const digits = '0'.repeat(numberDigits);
  const data = orderMessage(`${run}-${digits}`);
  const bytes = Buffer.alloc(5 + data.length);
  bytes.writeUInt32BE(data.length, 1);
  bytes.set(data, 5);
  const place = bytes.indexOf(digits);
  let number = 0;
  return {
    message: bytes,
    renew(copy, offset) {
      if (replays !== true) number += 1;
      copy.write(String(number).padStart(numberDigits, '0'), offset + place, 'latin1');
    },
  };
}

/** The order that all senders send. */
export function orderMessage(orderId: string): Uint8Array {
  const order = fromJson(CreateOrderRequestSchema, validOrderInput({ order_id: orderId }));
  return toBinary(CreateOrderRequestSchema, order);
}

if (import.meta.main) {
  const result = await sendGrpcLoad(JSON.parse(process.argv[2] ?? '{}') as GrpcLoadOptions);
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
}
