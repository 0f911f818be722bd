import { createCalls } from '../../src/calls/receive.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { createOperations } from '../../src/operations/all.ts';
import { createWatchEvents } from '../../src/operations/events.ts';
import { createGrpcServer, type GrpcServerOptions } from '../../src/rpc/server.ts';
import type { PortServer } from '../../src/runtime/network/listen.ts';
import type { FixedDeps } from './fixed-deps.ts';

/** Creates the server of the HTTP port without pages. */
export function httpServerOf(deps: FixedDeps): PortServer {
  return createHttpServer({ ...deps, calls: createCalls(deps) }, createOperations(deps), '');
}

/** Creates the server of the gRPC port. */
export function grpcServerOf(deps: FixedDeps, options?: GrpcServerOptions): PortServer {
  const watchEvents = createWatchEvents(deps);
  return createGrpcServer({ ...deps, calls: createCalls(deps), watchEvents }, createOperations(deps), options);
}
