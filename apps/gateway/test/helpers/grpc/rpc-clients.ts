import { execFile } from 'node:child_process';
import type { SecureClientSessionOptions } from 'node:http2';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { DescService } from '@bufbuild/protobuf';
import { durationMs } from '@bufbuild/protobuf/wkt';
import { type Client, ConnectError, createClient } from '@connectrpc/connect';
import {
  compressionBrotli,
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { ErrorInfoSchema, RetryInfoSchema } from '@order-gateway/contract/google/rpc/error_details_pb';
import { waitLimitMs } from '../../../../../tools/test-limits.ts';
import type { RunningGateway } from '../running-gateway.ts';

/** Returns a gRPC client of a service. */
export function grpcClient<Service extends DescService>(
  service: Service,
  { grpcUrl }: Pick<RunningGateway, 'grpcUrl'>,
  nodeOptions: SecureClientSessionOptions = {},
): Client<Service> {
  return createClient(service, createGrpcTransport({ baseUrl: grpcUrl, nodeOptions }));
}

/** The protocols and encodings of {@link rpcClients}. */
export const rpcNames = ['grpc', 'grpc-web', 'connect in JSON', 'connect in binary'] as const;

/** Returns a client of a service for each protocol and encoding. */
export function rpcClients<Service extends DescService>(
  service: Service,
  gateway: Pick<RunningGateway, 'url' | 'grpcUrl'>,
): { readonly name: (typeof rpcNames)[number]; readonly client: Client<Service> }[] {
  const overHttp = { baseUrl: gateway.url, httpVersion: '1.1' } as const;
  const transports = {
    grpc: createGrpcTransport({ baseUrl: gateway.grpcUrl }),
    'grpc-web': createGrpcWebTransport(overHttp),
    'connect in JSON': createConnectTransport({ ...overHttp, useBinaryFormat: false }),
    'connect in binary': createConnectTransport({ ...overHttp, useBinaryFormat: true }),
  };
  return rpcNames.map((name) => ({ name, client: createClient(service, transports[name]) }));
}

/**
 * Returns Connect clients that send calls without side effects as GET: one for each pair of encoding and compression.
 */
export function httpGetClients<Service extends DescService>(service: Service, { url }: Pick<RunningGateway, 'url'>) {
  const options = { baseUrl: url, httpVersion: '1.1', useHttpGet: true, compressMinBytes: 0 } as const;
  return [false, true].flatMap((useBinaryFormat) =>
    [null, compressionGzip, compressionBrotli].map((sendCompression) => ({
      name: `${useBinaryFormat ? 'binary' : 'JSON'} in ${sendCompression?.name ?? 'identity'}`,
      client: createClient(
        service,
        createConnectTransport({ ...options, useBinaryFormat, ...(sendCompression && { sendCompression }) }),
      ),
    })),
  );
}

/** Returns a failed call's status, its error code, and its retry delay if it has one. */
export async function rpcErrorOf(call: Promise<unknown>) {
  const reason = call.then(
    () => new Error('it got a response'),
    (error: unknown) => error,
  );
  const error = ConnectError.from(await reason);
  const { retryDelay } = error.findDetails(RetryInfoSchema)[0] ?? {};
  return {
    code: error.code,
    reason: error.findDetails(ErrorInfoSchema)[0]?.metadata.code,
    ...(retryDelay && { retryDelayMs: durationMs(retryDelay) }),
  };
}

const bufCommand = join(import.meta.dirname, '../../../../../packages/contract/node_modules/.bin/buf');

/** Runs `buf curl` and returns what it prints. */
export async function bufCurl(...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(bufCommand, ['curl', ...args], { timeout: waitLimitMs });
  return stdout;
}
