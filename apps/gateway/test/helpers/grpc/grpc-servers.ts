import type { ClientHttp2Session } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OrderStore } from '@order-gateway/domain/orders';
import { createInMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { expect, onTestFinished } from 'vitest';
import { http2Limits } from '../../../src/limits.ts';
import type { GrpcServerOptions } from '../../../src/rpc/server.ts';
import { type FixedDeps, fixedDeps } from '../fixed-deps.ts';
import { createMemoryLogger, type MemoryLogger } from '../memory-logger.ts';
import { grpcServerOf } from '../servers.ts';
import { openSession, ordinaryCall, sendCall } from './grpc-call.ts';
import { grpcTls } from './grpc-tls.ts';
import { openRawClient, type RawClient } from './raw-client.ts';

export interface RunningServer extends Pick<MemoryLogger, 'calls' | 'errors'> {
  readonly port: number;
  close(): Promise<void>;
}

export interface ServerOptions
  extends Partial<Pick<FixedDeps, 'store' | 'authenticate' | 'readiness' | 'trustProxy'>>,
    Pick<GrpcServerOptions, 'hasFastPath'> {
  /** Replaces the port's limits, so that a test does not have to wait a minute. */
  readonly limits?: Partial<typeof http2Limits>;
}

/** Like {@link startGrpcServer}, but closes the server when the test has finished. */
export async function runGrpcServer(options?: ServerOptions): Promise<RunningServer> {
  const server = await startGrpcServer(options);
  onTestFinished(server.close);
  return server;
}

/** Like `openSession`, but closes the session when the test has finished. */
export function useSession(port: number): ClientHttp2Session {
  const session = openSession(port);
  onTestFinished(() => session.close());
  return session;
}

/** Like `openRawClient`, but closes the connection when the test has finished. */
export async function useRawClient(port: number): Promise<RawClient> {
  const client = await openRawClient(port);
  onTestFinished(() => void client.socket.destroy());
  return client;
}

/** Starts the gRPC port with {@link fixedDeps}, or with the given dependencies in their place. */
export async function startGrpcServer({
  hasFastPath,
  limits,
  ...changedDeps
}: ServerOptions = {}): Promise<RunningServer> {
  const { logger, calls, errors } = createMemoryLogger();
  const deps: FixedDeps = { ...fixedDeps(logger), ...changedDeps };
  const tls = grpcTls && { context: { cert: grpcTls.cert, key: grpcTls.key }, renew: () => {} };
  const options = { ...(hasFastPath === undefined ? {} : { hasFastPath }), limits: { ...http2Limits, ...limits }, tls };
  const server = grpcServerOf(deps, options);
  const port = await server.listen(0, '127.0.0.1');
  return { port, calls, errors, close: () => server.close() };
}

/** Returns a store that creates no order until `release` is called. `entered` resolves when a creation waits. */
export function blockedStore() {
  const [entered, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const store = createInMemoryOrderStore();
  const create: OrderStore['create'] = async (order, timeoutMs) => {
    entered.resolve();
    await released.promise;
    return store.create(order, timeoutMs);
  };
  return { entered: entered.promise, release: released.resolve, store: { ...store, create } };
}

/**
 * Makes ordinary calls on a new connection, one after the other. The function returned stops them and returns the
 * statuses of the failed calls.
 */
export function makeCalls(port: number): () => Promise<unknown[]> {
  const session = openSession(port);
  const statuses: unknown[] = [];
  let isStopped = false;
  const callRepeatedly = async () => {
    do {
      const { trailers } = await sendCall(session, ordinaryCall(`ordinary-${statuses.length}`));
      statuses.push(trailers['grpc-status']);
      await sleep(10);
    } while (!isStopped);
  };
  const calls = callRepeatedly();
  return async () => {
    isStopped = true;
    await calls;
    session.close();
    return statuses.filter((status) => status !== '0');
  };
}

/** Starts the gRPC port and runs `body` while another client makes ordinary calls, all of which must succeed. */
export async function whileAnotherClientCalls(
  options: ServerOptions,
  body: (server: RunningServer) => Promise<void>,
): Promise<void> {
  const server = await startGrpcServer(options);
  const endCalls = makeCalls(server.port);
  let failed: unknown[] = [];
  try {
    await body(server);
  } finally {
    failed = await endCalls();
    await server.close();
  }
  expect(failed).toEqual([]);
  expect(server.errors).toEqual([]);
}
