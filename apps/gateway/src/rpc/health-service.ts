import type { DescService } from '@bufbuild/protobuf';
import { Code, ConnectError, type ConnectRouter, type HandlerContext, type ServiceImpl } from '@connectrpc/connect';
import {
  Health,
  type HealthCheckRequest,
  HealthCheckResponse_ServingStatus,
} from '@order-gateway/contract/health/v1/health_pb';
import { endOf, type Readiness } from '../start/readiness.ts';

const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = HealthCheckResponse_ServingStatus;

const responseOf = (isReady: boolean) => ({ status: isReady ? SERVING : NOT_SERVING });

/**
 * gRPC's health checking (github.com/grpc/grpc, doc/health-checking.md) for the process, under the empty name, and for
 * each service under its name. All of them have the status of `/health/ready`.
 */
export function addHealthService(router: ConnectRouter, readiness: Readiness, services: readonly DescService[]): void {
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
        await endOf(signal);
      }
    },
  } satisfies ServiceImpl<typeof Health>);
}
