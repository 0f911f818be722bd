import { lookup } from 'node:dns/promises';
import { isIPv6 } from 'node:net';
import { createServiceOrderIds } from '@gateway/domain/order-id';
import { type BaseUrl, pathPrefixOf } from '@gateway/domain/payment-link';
import { openMerchantDirectory } from '@gateway/postgres/merchant-directory';
import { openOrderIds } from '@gateway/postgres/order-ids';
import { openOrderStore } from '@gateway/postgres/order-store';
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
  /** The address that both listeners are bound to, as it stands in a URL. */
  readonly host: string;
  readonly httpPort: number;
  readonly grpcPort: number;
  /** Stops listening, lets calls under way finish, and closes the connections to the database. */
  close(): Promise<void>;
}

/** The configuration, with a database that is there. */
export type GatewayConfig = Omit<Config, 'dataDir'> & {
  readonly databaseUrl: string;
  /** Absent: the order store's own bound. */
  readonly ordersWaitingMax?: number | undefined;
};

/** Opens the stores and both doors of a gateway on a database that has its schema already. */
export async function openGateway(config: GatewayConfig, log: Log): Promise<Gateway> {
  const address = await addressOf(config.host);
  const host = isIPv6(address) ? `[${address}]` : address;
  const blocks = openOrderIds({ url: config.databaseUrl });
  const directory = openMerchantDirectory({ url: config.databaseUrl });
  const { ordersWaitingMax: waitingMax } = config;
  const store = openOrderStore({ url: config.databaseUrl, ...(waitingMax === undefined ? {} : { waitingMax }) });
  let baseUrl = config.baseUrl ?? ownBaseUrl(host, config.httpPort);
  const deps = {
    store,
    serviceOrderIds: createServiceOrderIds(blocks.reserve),
    randomBytes: createRandomBytes(),
    now: Date.now,
    authenticate: limited(createAuthenticate({ directory, now: Date.now, monotonicNow }), config.rateLimit),
    baseUrl: () => baseUrl,
    isReady: () => blocks.isReachable(),
    checkoutTemplate: config.checkoutTemplate,
    checkoutClients: config.checkoutClients,
    log,
  };
  const http = createHttpListener(deps, pathPrefixOf(baseUrl));
  const grpc = createGrpcListener(deps);
  const close = async () => {
    await Promise.all([http.close(), grpc.close()]);
    await Promise.all([store.close(), directory.close(), blocks.close()]);
  };
  try {
    const httpPort = await bound('HTTP_PORT', { address, port: config.httpPort }, http.listen);
    baseUrl = config.baseUrl ?? ownBaseUrl(host, httpPort);
    const grpcPort = await bound('GRPC_PORT', { address, port: config.grpcPort }, grpc.listen);
    return { baseUrl, host, httpPort, grpcPort, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const monotonicNow = () => performance.now();

function limited(authenticate: Authenticate, callsPerSecond: number | undefined): Authenticate {
  return callsPerSecond === undefined ? authenticate : withRateLimit(authenticate, { callsPerSecond, monotonicNow });
}

/**
 * The one address behind HOST. A name can have several; given the name itself, the two listeners would choose each in their own
 * way, and Fastify would open a second listener for `localhost`, which none of our bounds reaches.
 */
async function addressOf(host: string): Promise<string> {
  try {
    const { address } = await lookup(host, { order: 'ipv4first' });
    return address;
  } catch (error) {
    throw wrongHost(host, codeOf(error));
  }
}

/** Bound to one of these, a listener is reached as `localhost`. */
const localhostAddresses: readonly string[] = ['127.0.0.1', '0.0.0.0', '[::]'];

function ownBaseUrl(host: string, httpPort: number): BaseUrl {
  const url = `http://${host}:${httpPort}`;
  // A link-local address with its interface (fe80::1%eth0) has no place in a URL.
  return (localhostAddresses.includes(host) || !URL.canParse(url) ? `http://localhost:${httpPort}` : url) as BaseUrl;
}

/** Says in words which port or address can't be had, and why. */
async function bound(
  variable: 'HTTP_PORT' | 'GRPC_PORT',
  { address, port }: { readonly address: string; readonly port: number },
  listen: (port: number, host: string) => Promise<number>,
): Promise<number> {
  try {
    return await listen(port, address);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EADDRNOTAVAIL') throw wrongHost(address, code);
    const reason = code === 'EADDRINUSE' ? 'it is taken' : `the system says ${code}`;
    throw new StartError(`${variable} ${port} can't be listened on: ${reason}. Set ${variable} to another port.`);
  }
}

function wrongHost(host: string, code: unknown): StartError {
  return new StartError(
    `HOST ${host} can't be listened on: the system says ${code}. Set HOST to an address of this machine.`,
  );
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : error;
}
