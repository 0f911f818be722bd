import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { createClientId, createClientSecret } from '@gateway/domain/credentials';
import type { Merchant, MerchantId } from '@gateway/domain/merchant';
import type { BaseUrl } from '@gateway/domain/payment-link';
import { success } from '@gateway/domain/result';
import { createInMemoryOrderStore } from '@gateway/domain/testing/in-memory-order-store';
import type { GatewayDeps } from '../src/gateway-deps.ts';
import { orderServiceOptions, orderServiceRoutes } from '../src/grpc/order-service.ts';
import { createGrpcListener } from '../src/grpc/server.ts';
import type { CallRecord } from '../src/log.ts';
import { requestIdOf } from '../src/request-id.ts';

const sevens = (count: number) => new Uint8Array(count).fill(7);

/** The one client of every listener here. */
export const credentials = { clientId: createClientId(sevens), clientSecret: createClientSecret(sevens) };

const merchant: Merchant = { id: 7 as MerchantId, name: 'Shop', checksumMode: 'versioned' };

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
  // As a varint, every id has the same length.
  let lastOrderId = 2 ** 40;
  const deps: GatewayDeps = {
    store: createInMemoryOrderStore(),
    serviceOrderIds: { take: () => ++lastOrderId },
    randomBytes: sevens,
    now: () => 1_790_000_000_000,
    async authenticate({ clientId, clientSecret }) {
      const known = clientId === credentials.clientId && clientSecret === credentials.clientSecret;
      return known ? success(merchant) : { ok: false, failure: { kind: 'unauthenticated' } };
    },
    baseUrl: () => 'http://localhost' as BaseUrl,
    checkoutClients: new Set(),
    log: {
      call: (record) => calls.push(record),
      info: () => {},
      fault: (_message, error) => faults.push(error),
      flush: async () => {},
    },
    ...own,
  };
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
