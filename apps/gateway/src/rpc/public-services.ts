import { aborted } from 'node:util';
import type { DescService } from '@bufbuild/protobuf';
import { Code, ConnectError, type ConnectRouter, type HandlerContext, type ServiceImpl } from '@connectrpc/connect';
import { ServerReflection } from '@order-gateway/contract/grpc/reflection/v1/reflection_pb';
import { ServerReflection as ServerReflectionAlpha } from '@order-gateway/contract/grpc/reflection/v1alpha/reflection_pb';
import {
  Health,
  type HealthCheckRequest,
  HealthCheckResponse_ServingStatus,
} from '@order-gateway/contract/health/v1/health_pb';
import type { Readiness } from '../runtime/start/readiness.ts';
import { addReflectionServices } from './reflection-service.ts';

/** The services that anyone may call, without credentials and without a log line for each call. */
export const publicServices: readonly DescService[] = [Health, ServerReflection, ServerReflectionAlpha];

/** Adds the public services, which report the health of the given services and describe them. */
export function addPublicServices(router: ConnectRouter, readiness: Readiness, services: readonly DescService[]): void {
  addHealthService(router, readiness, services);
  addReflectionServices(router, [...services, Health]);
}

const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = HealthCheckResponse_ServingStatus;

const responseOf = (isReady: boolean) => ({ status: isReady ? SERVING : NOT_SERVING });

/**
 * Adds gRPC's health checking (github.com/grpc/grpc, doc/health-checking.md). The empty name stands for the process,
 * and each service has its own name. All of them have the status of `/health/ready`.
 */
function addHealthService(router: ConnectRouter, readiness: Readiness, services: readonly DescService[]): void {
  const names = new Set(['', ...services.map(({ typeName }) => typeName)]);
  router.service(Health, {
    async check({ service }: HealthCheckRequest) {
      if (!names.has(service)) throw new ConnectError('unknown service', Code.NotFound);
      return responseOf(await readiness.isReady());
    },

    async list() {
      const response = responseOf(await readiness.isReady());
      return { statuses: Object.fromEntries(Array.from(names, (name) => [name, response])) };
    },

    async *watch({ service }: HealthCheckRequest, { signal }: Pick<HandlerContext, 'signal'>) {
      if (names.has(service)) {
        for await (const isReady of readiness.watch(signal)) yield responseOf(isReady);
      } else {
        yield { status: SERVICE_UNKNOWN };
        await aborted(signal, signal);
      }
    },
  } satisfies ServiceImpl<typeof Health>);
}
