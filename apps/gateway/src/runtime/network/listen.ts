import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { type AddressInfo, createServer, isIPv6, type ListenOptions, type Server } from 'node:net';
import type { BaseUrl } from '@order-gateway/domain/links';
import { StartError } from '@order-gateway/runtime/process';

export interface PortServer {
  /** Binds the port, or a free one if it is 0, and returns the port that was bound. */
  listen(port: number, host: string): Promise<number>;
  /** Accepts nothing new and lets calls in flight finish, for a limited time. */
  close(): Promise<void>;
}

export async function bind(server: Server, options: ListenOptions): Promise<number> {
  server.listen(options);
  await once(server, 'listening');
  return portOf(server);
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/**
 * Resolves HOST to one address. A name can have several addresses. If the servers got the name, they could choose
 * different addresses, and Fastify would open a second server for `localhost`, without the gateway's limits.
 */
export async function addressOf(host: string): Promise<string> {
  try {
    const { address } = await lookup(host, { order: 'ipv4first' });
    return address;
  } catch (error) {
    throw wrongHost(host, codeOf(error));
  }
}

export function hostInUrl(address: string): string {
  return isIPv6(address) ? `[${address}]` : address;
}

/** A server that is bound to one of these addresses can be reached as `localhost`. */
const localhostAddresses: readonly string[] = ['127.0.0.1', '0.0.0.0', '[::]'];

/** Returns the base URL of a gateway that is configured without BASE_URL. */
export function defaultBaseUrl(scheme: 'http' | 'https', host: string, httpPort: number): BaseUrl {
  const url = `${scheme}://${host}:${httpPort}`;
  // A URL can't hold a link-local address with its interface (fe80::1%eth0).
  return (
    localhostAddresses.includes(host) || !URL.canParse(url) ? `${scheme}://localhost:${httpPort}` : url
  ) as BaseUrl;
}

type PortVariable = 'HTTP_PORT' | 'GRPC_PORT' | 'ADMIN_PORT' | 'CHECKOUT_PORT';

/**
 * Binds all ports briefly, before anything is started. Throws an error with one line for each port that can't be used.
 */
export async function requireFreePorts(
  address: string,
  ports: Readonly<Record<Exclude<PortVariable, 'CHECKOUT_PORT'>, number>>,
): Promise<void> {
  const problems = new Set<string>();
  for (const variable of ['HTTP_PORT', 'GRPC_PORT', 'ADMIN_PORT'] as const) {
    try {
      await freePort(variable, address, ports[variable]);
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      problems.add(error.message);
    }
  }
  if (problems.size > 0) throw new StartError([...problems].join('\n'));
}

/**
 * Binds a port briefly, and returns it, or a free one if it is 0. Throws an error that says in one line which port or
 * address can't be used, and why.
 */
export async function freePort(variable: PortVariable, address: string, port: number): Promise<number> {
  const server = createServer();
  const listen = (port: number, host: string) => bind(server, { port, host });
  const bound = await listenOn(variable, address, port, { listen });
  await new Promise((resolve) => server.close(resolve));
  return bound;
}

/**
 * Binds a port and returns its number. Throws an error that says in one line which port or address can't be used, and
 * why.
 */
export async function listenOn(
  variable: PortVariable,
  address: string,
  port: number,
  { listen }: Pick<PortServer, 'listen'>,
): Promise<number> {
  try {
    return await listen(port, address);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EADDRNOTAVAIL') throw wrongHost(address, code);
    const reason = code === 'EADDRINUSE' ? 'is already in use' : `can't be used (${code})`;
    throw new StartError(`${variable} ${port} ${reason}. Set ${variable} to another port.`);
  }
}

function wrongHost(host: string, code: unknown): StartError {
  return new StartError(`HOST ${host} can't be used (${code}). Set HOST to an address of this machine.`);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : error;
}
