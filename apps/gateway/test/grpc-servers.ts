import type { GatewayDeps } from '../src/gateway-deps.ts';
import { orderService } from '../src/rpc/order-service.ts';
import { createGrpcServer, type GrpcServerOptions } from '../src/rpc/server.ts';
import { fixedDeps } from './fixed-deps.ts';
import { createMemoryLogger, type MemoryLogger } from './memory-logger.ts';

export interface RunningServer extends Omit<MemoryLogger, 'logger'> {
  readonly port: number;
  close(): Promise<void>;
}

export interface ServerOptions extends Partial<Pick<GatewayDeps, 'store' | 'authenticate'>>, GrpcServerOptions {}

/** The gRPC port with orders in memory, and without chance and time: equal calls get equal bytes. */
export async function runGrpcServer({ hasFastPath, limits, ...own }: ServerOptions = {}): Promise<RunningServer> {
  const { logger, calls, errors } = createMemoryLogger();
  const deps: GatewayDeps = { ...fixedDeps(logger), ...own };
  const options = {
    ...(hasFastPath === undefined ? {} : { hasFastPath }),
    ...(limits === undefined ? {} : { limits }),
  };
  const server = createGrpcServer(deps, [orderService(deps)], options);
  const port = await server.listen(0, '127.0.0.1');
  return { port, calls, errors, close: () => server.close() };
}
