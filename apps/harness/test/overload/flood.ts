import { connect } from 'node:net';
import { fromJson, toBinary } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Credentials } from '@order-gateway/domain/accounts';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { type FloodConnection, idEnd } from './connection.ts';
import { createGrpcConnection } from './grpc-connection.ts';
import { createHttpConnection } from './http-connection.ts';

// Sends calls in an open loop. Even on part of one core, it can send several times as many calls as a gateway can
// handle. `pnpm load` cannot, because it parses every response. The argument is FloodOptions, and the output is a
// FloodResult, both as JSON.

export interface FloodOptions {
  readonly protocol: 'json' | 'grpc';
  readonly port: number;
  /** The connections use these accounts in turn. */
  readonly credentials: readonly Credentials[];
  /** Calls per second. */
  readonly rate: number;
  readonly seconds: number;
  readonly connections: number;
  /** The local address from which the connections are opened; by default, the operating system chooses it. */
  readonly localAddress?: string;
}

export interface FloodResult {
  readonly sent: number;
  /** Calls that were abandoned before a connection was free to send them. */
  readonly unsent: number;
  readonly created: Latencies;
  readonly rejected: Latencies;
  /** Calls without a response 10 s after the end of the schedule. */
  readonly unanswered: number;
  /** Orders created in each second of the schedule. */
  readonly createdBySecond: readonly number[];
}

/** Times in milliseconds, measured from the scheduled time of each call. */
export interface Latencies {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** The maximum number of calls of one process. */
const callsMax = 10_000_000;

/** A call that has not been sent this long after its scheduled time is abandoned, as a client would abandon it. */
const giveUpMs = 5_000;

function latenciesOf(values: number[]): Latencies {
  const sorted = Float64Array.from(values).sort();
  const quantile = (share: number) => Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0);
  return { count: sorted.length, p50: quantile(0.5), p99: quantile(0.99), max: quantile(1) };
}

async function flood(options: FloodOptions): Promise<FloodResult> {
  const { protocol, port, credentials, rate, seconds, localAddress } = options;
  const runId = Date.now() % 1_000_000;
  const connections = await Promise.all(
    Array.from({ length: options.connections }, async (_, index): Promise<FloodConnection> => {
      const account = credentials[index % credentials.length] as Credentials;
      const input = validOrderInput({ order_id: `flood-${runId}-${index}-${idEnd}` });
      const socket = connect({ port, host: '127.0.0.1', noDelay: true, ...(localAddress && { localAddress }) });
      // A connection that a proxy rejects sends nothing.
      await new Promise((resolve) => socket.once('connect', resolve).once('error', resolve));
      const order =
        protocol === 'json'
          ? Buffer.from(JSON.stringify(input))
          : Buffer.from(toBinary(CreateOrderRequestSchema, fromJson(CreateOrderRequestSchema, input)));
      const create = protocol === 'json' ? createHttpConnection : createGrpcConnection;
      return create(socket, account, order);
    }),
  );
  const total = Math.min(callsMax, Math.round(rate * seconds));
  const [created, rejected, createdBySecond]: [number[], number[], number[]] = [[], [], []];
  const startedAt = performance.now();
  const scheduledMs = (number: number) => (number * 1_000) / rate;
  let [next, sent, unsent, lastUsed] = [0, 0, 0, 0];
  const findFree = () => {
    for (let tries = 0; tries < connections.length; tries += 1) {
      lastUsed = (lastUsed + 1) % connections.length;
      if (connections[lastUsed]?.isFree) return connections[lastUsed];
    }
    return undefined;
  };
  const sendScheduled = () => {
    const nowMs = performance.now() - startedAt;
    while (next < total && scheduledMs(next) <= nowMs) {
      const scheduled = scheduledMs(next);
      if (nowMs - scheduled > giveUpMs) {
        next += 1;
        unsent += 1;
        continue;
      }
      const connection = findFree();
      if (connection === undefined) return;
      next += 1;
      sent += 1;
      connection.send((isCreated) => {
        const endMs = performance.now() - startedAt;
        (isCreated ? created : rejected).push(endMs - scheduled);
        if (!isCreated) return;
        const second = Math.floor(endMs / 1_000);
        createdBySecond[second] = (createdBySecond[second] ?? 0) + 1;
      });
    }
  };
  const responseCount = () => created.length + rejected.length;
  const endMs = seconds * 1_000 + 10_000;
  while ((next < total || responseCount() < sent) && performance.now() - startedAt < endMs) {
    sendScheduled();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  for (const connection of connections) connection.close();
  return {
    sent,
    unsent: unsent + total - next,
    unanswered: sent - responseCount(),
    created: latenciesOf(created),
    rejected: latenciesOf(rejected),
    createdBySecond: Array.from({ length: Math.ceil(seconds) }, (_, second) => createdBySecond[second] ?? 0),
  };
}

process.stdout.write(JSON.stringify(await flood(JSON.parse(String(process.argv[2])))));
