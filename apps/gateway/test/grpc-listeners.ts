import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import type { GatewayDeps } from '../src/gateway-deps.ts';
import { orderServiceOptions, orderServiceRoutes } from '../src/grpc/order-service.ts';
import { createGrpcListener } from '../src/grpc/server.ts';
import type { CallRecord } from '../src/log.ts';
import { requestIdOf } from '../src/request-id.ts';
import { heldStill } from './held-still.ts';

export interface RunningListener {
  readonly port: number;
  readonly calls: CallRecord[];
  readonly faults: unknown[];
  close(): Promise<void>;
}

export interface ListenerOptions extends Partial<Pick<GatewayDeps, 'store' | 'authenticate'>> {
  /** Calls are answered by Connect's own adapter on Node.js's own server: what ours are held against. */
  readonly isStock?: boolean;
}

/** The gRPC door with orders in memory, and with chance and time held still: equal calls get equal bytes. */
export async function runGrpcListener({ isStock = false, ...own }: ListenerOptions = {}): Promise<RunningListener> {
  const calls: CallRecord[] = [];
  const faults: unknown[] = [];
  const deps: GatewayDeps = { ...heldStill(calls, faults), ...own };
  if (isStock) return { calls, faults, ...(await runStockListener(deps)) };
  const listener = createGrpcListener(deps);
  const port = await listener.listen(0, '127.0.0.1');
  return { port, calls, faults, close: () => listener.close() };
}

async function runStockListener(deps: GatewayDeps): Promise<{ port: number; close(): Promise<void> }> {
  const adapter = connectNodeAdapter({ ...orderServiceOptions(deps), routes: orderServiceRoutes(deps) });
  const server = createServer((request, response) => {
    // As ours has it where Connect refuses before there is a call.
    response.setHeader('x-request-id', requestIdOf(request.headers['x-request-id']?.toString(), deps.randomBytes));
    adapter(request, response);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => sessions.add(session));
  const close = async () => {
    for (const session of sessions) session.destroy();
    await new Promise((resolve) => server.close(resolve));
  };
  return { port, close };
}
