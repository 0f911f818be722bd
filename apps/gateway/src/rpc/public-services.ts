import type { DescService } from '@bufbuild/protobuf';
import type { ConnectRouter } from '@connectrpc/connect';
import { ServerReflection } from '@order-gateway/contract/grpc/reflection/v1/reflection_pb';
import { ServerReflection as ServerReflectionAlpha } from '@order-gateway/contract/grpc/reflection/v1alpha/reflection_pb';
import { Health } from '@order-gateway/contract/health/v1/health_pb';
import type { Readiness } from '../start/readiness.ts';
import { addHealthService } from './health-service.ts';
import { addReflectionServices } from './reflection-service.ts';

/** The services that anyone may call, without credentials and without a log line for each call. */
export const publicServices: readonly DescService[] = [Health, ServerReflection, ServerReflectionAlpha];

/** Adds the public services, which report the health of the given services and describe them. */
export function addPublicServices(router: ConnectRouter, readiness: Readiness, services: readonly DescService[]): void {
  addHealthService(router, readiness, services);
  addReflectionServices(router, [...services, Health]);
}
