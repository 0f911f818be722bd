import { createServiceOrderIds } from '@gateway/domain/order-id';
import { type BaseUrl, pathPrefixOf } from '@gateway/domain/payment-link';
import { openClientDirectory } from '@gateway/postgres/client-directory';
import { openOrderStore } from '@gateway/postgres/order-store';
import { openServiceOrderIdBlocks } from '@gateway/postgres/service-order-id-blocks';
import { type Authenticate, createAuthenticate } from './authenticate.ts';
import type { Config } from './config.ts';
import { createGrpcListener } from './grpc/server.ts';
import { createHttpListener } from './http/server.ts';
import type { Log } from './log.ts';
import { createRandomBytes } from './random-bytes.ts';
import { withRateLimit } from './rate-limit.ts';
import { StartError } from './run.ts';

export interface Gateway {
  readonly baseUrl: BaseUrl;
  readonly httpPort: number;
  readonly grpcPort: number;
  /** Stops listening, lets calls under way finish, and closes the connections to the database. */
  close(): Promise<void>;
}

export type GatewayConfig = Pick<Config, 'host' | 'httpPort' | 'grpcPort' | 'baseUrl' | 'rateLimit'> &
  Partial<Pick<Config, 'checkoutTemplate' | 'checkoutClients'>> & {
    readonly databaseUrl: string;
    /** Absent: the order store's own bound. */
    readonly ordersWaitingMax?: number;
  };

/** Opens the stores and both doors of a gateway on a database that has its schema already. */
export async function openGateway(config: GatewayConfig, log: Log): Promise<Gateway> {
  const blocks = openServiceOrderIdBlocks(config.databaseUrl);
  const directory = openClientDirectory(config.databaseUrl);
  const { ordersWaitingMax: waitingMax } = config;
  const store = openOrderStore({ url: config.databaseUrl, ...(waitingMax === undefined ? {} : { waitingMax }) });
  let baseUrl = config.baseUrl ?? localBaseUrl(config.httpPort);
  const deps = {
    store,
    serviceOrderIds: createServiceOrderIds(blocks.reserve),
    randomBytes: createRandomBytes(),
    now: Date.now,
    authenticate: limited(createAuthenticate({ directory, now: Date.now, monotonicNow }), config.rateLimit),
    baseUrl: () => baseUrl,
    isReady: () => blocks.isReachable(),
    checkoutTemplate: config.checkoutTemplate,
    checkoutClients: config.checkoutClients ?? new Set<string>(),
    log,
  };
  const http = createHttpListener(deps, pathPrefixOf(baseUrl));
  const grpc = createGrpcListener(deps);
  const close = async () => {
    await Promise.all([http.close(), grpc.close()]);
    await Promise.all([store.close(), directory.close(), blocks.close()]);
  };
  const { host } = config;
  try {
    const httpPort = await bound('HTTP_PORT', { host, port: config.httpPort }, http.listen);
    baseUrl = config.baseUrl ?? localBaseUrl(httpPort);
    const grpcPort = await bound('GRPC_PORT', { host, port: config.grpcPort }, grpc.listen);
    return { baseUrl, httpPort, grpcPort, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const monotonicNow = () => performance.now();

function limited(authenticate: Authenticate, callsPerSecond: number | undefined): Authenticate {
  return callsPerSecond === undefined ? authenticate : withRateLimit(authenticate, { callsPerSecond, monotonicNow });
}

function localBaseUrl(httpPort: number): BaseUrl {
  return `http://localhost:${httpPort}` as BaseUrl;
}

/** What the system says where the fault is the address, not the port. */
const addressFaults = new Set<unknown>(['EADDRNOTAVAIL', 'EAI_AGAIN', 'ENOTFOUND']);

/** Says in words which port or address can't be had, and why. */
async function bound(
  variable: 'HTTP_PORT' | 'GRPC_PORT',
  { host, port }: { readonly host: string; readonly port: number },
  listen: (port: number, host: string) => Promise<number>,
): Promise<number> {
  try {
    return await listen(port, host);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error;
    if (addressFaults.has(code)) {
      throw new StartError(
        `HOST ${host} can't be listened on: the system says ${code}. Set HOST to an address of this machine.`,
      );
    }
    const reason = code === 'EADDRINUSE' ? 'it is taken' : `the system says ${code}`;
    throw new StartError(`${variable} ${port} can't be listened on: ${reason}. Set ${variable} to another port.`);
  }
}
