import { connect } from 'node:http2';
import { createHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromJson, toBinary } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { order } from '../order.ts';
import { createBareInsert } from '../servers/bare-insert.ts';
import type { Load, LoadResult } from './send-load.ts';

// A program that loads one server with new orders and prints the result. Its options are JSON in the first argument.

/** Sends one order. Resolves to whether it was created. */
type Call = (orderId: string) => Promise<boolean>;

const connections = 4;
/** All order_ids of a run have the same length. */
const digits = 9;
/** The time at the start that is not measured, while the sender warms up. */
const settlingMs = 1_000;
const tickMs = 1;
/** How long to wait for the last responses: slightly longer than the deadline of the calls. */
const lastResponsesMs = 6_000;

/** Returns a gRPC call that uses 4 connections of `node:http2` in turn, like a client with a pool of channels. */
function createGrpcCall({ port, merchant, runId }: Load): Call {
  // A failed connection ends the program with its error, because nothing listens for 'error'.
  const sessions = Array.from({ length: connections }, () => connect(`http://127.0.0.1:${port}`));
  // The header fields that grpc-js 1.14 sends for a call with a deadline and credentials.
  const headers = {
    ':method': 'POST',
    ':path': '/gateway.v1.OrderService/CreateOrder',
    'x-client-id': merchant.clientId,
    'x-client-secret': merchant.clientSecret,
    'grpc-accept-encoding': 'identity,deflate,gzip',
    'accept-encoding': 'identity',
    'grpc-timeout': '5000m',
    'user-agent': 'grpc-node-js/1.14.7',
    'content-type': 'application/grpc',
    te: 'trailers',
  };
  const firstId = `${runId}-${'0'.repeat(digits)}`;
  const request = fromJson(CreateOrderRequestSchema, { ...order, order_id: firstId });
  const message = toBinary(CreateOrderRequestSchema, request);
  const frame = Buffer.concat([Buffer.alloc(5), message]);
  frame.writeUInt32BE(message.length, 1);
  const orderIdOffset = frame.indexOf(firstId);
  let calls = 0;
  return (orderId) => {
    const body = Buffer.from(frame);
    body.write(orderId, orderIdOffset, 'latin1');
    calls += 1;
    const stream = sessions[calls % connections]?.request(headers);
    if (stream === undefined) throw new Error('no connection');
    let status: unknown;
    stream.on('trailers', (trailers) => {
      status = trailers['grpc-status'];
    });
    stream.on('error', () => {});
    stream.resume().end(body);
    return new Promise((resolve) => {
      stream.on('close', () => resolve(status === '0'));
    });
  };
}

/** Returns a call that inserts an order into the database as the bare servers do, but without a server. */
function createInsertCall({ databaseUrl, merchant }: Load): Call {
  const insert = createBareInsert(databaseUrl, merchant.id);
  return () => insert().then(() => true);
}

async function send(load: Load): Promise<LoadResult> {
  const { protocol, concurrency, seconds, rate, runId } = load;
  const call = protocol === 'grpc' ? createGrpcCall(load) : createInsertCall(load);
  const latencies = createHistogram({ figures: 3 });
  const startedAt = performance.now();
  const measuredFrom = startedAt + settlingMs;
  const endsAt = measuredFrom + seconds * 1_000;
  let sent = 0;
  let failed = 0;
  let inFlight = 0;
  const callOnce = async (scheduledAt: number) => {
    inFlight += 1;
    sent += 1;
    const isCreated = await call(`${runId}-${String(sent).padStart(digits, '0')}`);
    inFlight -= 1;
    const now = performance.now();
    // On a schedule, slow calls that end after the run are included. Without them, the p99 would be too low.
    const isMeasured =
      rate === undefined ? now >= measuredFrom && now < endsAt : scheduledAt >= measuredFrom && scheduledAt < endsAt;
    if (!isCreated) failed += 1;
    else if (isMeasured) latencies.record(Math.max(1, Math.round((now - scheduledAt) * 1_000)));
  };
  const callUntilEnd = async () => {
    while (performance.now() < endsAt) await callOnce(performance.now());
  };
  if (rate === undefined) await Promise.all(Array.from({ length: concurrency }, callUntilEnd));
  else {
    let now: number;
    do {
      now = performance.now();
      // Sends all calls that are scheduled before the end, even if this program is late.
      const scheduled = ((Math.min(now, endsAt) - startedAt) * rate) / 1_000;
      while (sent < scheduled) void callOnce(startedAt + (sent * 1_000) / rate);
      await sleep(tickMs);
    } while (now < endsAt);
    while (inFlight > 0 && performance.now() < endsAt + lastResponsesMs) await sleep(tickMs);
    failed += inFlight;
  }
  const milliseconds = (percent: number) => latencies.percentile(percent) / 1_000;
  return { created: latencies.count, failed, seconds, p50Ms: milliseconds(50), p99Ms: milliseconds(99) };
}

const result = await send(JSON.parse(process.argv[2] ?? '') as Load);
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
