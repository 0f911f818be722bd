import { Health } from '@gateway/contract/health/v1/health_pb';
import type { GatewayDeps } from '../gateway-deps.ts';
import type { RpcService } from './context.ts';
import { healthService } from './health-service.ts';
import { reflectionServices } from './reflection-service.ts';

/** The services of the gRPC port: those given, and health checking and reflection for them. */
export function withPublicServices({ readiness }: GatewayDeps, services: readonly RpcService[]): RpcService[] {
  const descriptors = services.map(({ descriptor }) => descriptor);
  return [...services, healthService(readiness, descriptors), ...reflectionServices([...descriptors, Health])];
}
