import { once } from 'node:events';
import { connect, type NetConnectOpts, type Socket } from 'node:net';

/** Where postgres.js connects to, as it tells its `socket` option: one of some hosts, or the path of a Unix socket. */
export interface SocketTarget {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path: string | false;
}

/**
 * Gives the `socket` option of postgres.js: connects to the first host that lets it. Once `over` aborts it opens no more, and
 * rejects what is still connecting.
 */
export function socketOpener(over: AbortSignal): (target: SocketTarget) => Promise<Socket> {
  const open = async (address: NetConnectOpts): Promise<Socket> => {
    over.throwIfAborted();
    const socket = connect({ ...address, noDelay: true });
    try {
      await once(socket, 'connect', { signal: over });
      return socket;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  };
  return async ({ host: hosts, port: ports, path }) => {
    if (path !== false) return open({ path });
    let refusal: unknown;
    for (const [index, host] of hosts.entries()) {
      try {
        // The driver reads from the socket which name the certificate has to be for.
        return Object.assign(await open({ host, port: ports[index] ?? 0 }), { host });
      } catch (error) {
        refusal = error;
      }
    }
    throw refusal;
  };
}
