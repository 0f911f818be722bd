import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { ConnectionLost } from './errors.ts';

/** The shortest time between two connection attempts of a client, so that a database that is down is not flooded. */
const reconnectPauseMs = 100;

/** The hosts of a URL as the driver parsed it, or the path of a Unix socket. */
export interface SocketTarget {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path: string | false | undefined;
}

/** Where one socket leads: a host and port, or the path of a Unix socket. */
export type Address =
  | { readonly path: string }
  | { readonly host: string | undefined; readonly port: number | undefined };

/** Opens a socket for the driver. Throws if the connection that needs it has ended by then. */
export type OpenSocket = (target: SocketTarget, isOver: () => boolean) => Promise<AddressedSocket>;

/** A socket, and where it leads. */
export interface AddressedSocket {
  readonly address: Address;
  /** Absent for a Unix socket. */
  readonly host: string | undefined;
  readonly socket: DriverSocket;
}

/** A socket of the driver, which adds the TLS socket that it opens on top of it (docs/decisions/044-patch-the-driver.md). */
type DriverSocket = Socket & { readonly secured?: TLSSocket };

/**
 * Opens the sockets of a client: each connection attempt goes to the next host of the URL, as in the driver itself, but not
 * more often than every {@link reconnectPauseMs}. The driver adds TLS to them.
 */
export function createSocketOpener(): OpenSocket {
  let attempts = 0;
  let mayConnectAt = 0;
  return async ({ host: hosts, port: ports, path }, isOver) => {
    const now = performance.now();
    mayConnectAt = Math.max(now, mayConnectAt);
    const pauseMs = mayConnectAt - now;
    mayConnectAt += reconnectPauseMs;
    // Waits even if the pause is 0: an error that `connect` raises at once must not be emitted before the driver listens.
    await sleep(pauseMs);
    if (isOver()) throw new ConnectionLost();
    const index = attempts % hosts.length;
    attempts += 1;
    return connectTo(path ? { path } : { host: hosts[index], port: ports[index] });
  };
}

/** Opens a socket to an address. */
export function connectTo(address: Address): AddressedSocket {
  const socket = connect('path' in address ? address : { ...address, port: address.port ?? 0, noDelay: true });
  // The driver would reconnect to a server that closes each new connection until the deadline of the statement.
  socket.once('end', () => {
    if (socket.bytesRead === 0) socket.destroy(new ConnectionLost());
  });
  // The driver takes the server name for TLS from the socket.
  const host = 'host' in address ? address.host : undefined;
  return { address, host, socket: Object.assign(socket, address) };
}
