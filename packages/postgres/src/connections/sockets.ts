import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import type { TlsSettings } from './connection-url.ts';
import { ConnectionLost, noTlsMessage } from './errors.ts';

/** The minimum time between two connection attempts of a client, so that they do not flood a database that is down. */
const reconnectPauseMs = 100;

/** The hosts of a URL as the driver parsed it, or the path of a Unix socket. */
export interface SocketTarget {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path: string | false | undefined;
}

/** The address of one socket: a host and port, or the path of a Unix socket. */
export type Address =
  | { readonly path: string }
  | { readonly host: string | undefined; readonly port: number | undefined };

/** Chooses the address of a client's next socket. */
export type NextAddress = (target: SocketTarget) => Promise<Address>;

/**
 * Chooses the addresses of a client. As in the driver itself, each connection attempt goes to the next host of the URL,
 * but attempts are at least {@link reconnectPauseMs} apart.
 */
export function createAddresses(): NextAddress {
  let attempts = 0;
  let mayConnectAtMs = 0;
  return async ({ host: hosts, port: ports, path }) => {
    const nowMs = performance.now();
    mayConnectAtMs = Math.max(nowMs, mayConnectAtMs);
    const pauseMs = mayConnectAtMs - nowMs;
    mayConnectAtMs += reconnectPauseMs;
    // Waits even if the pause is 0: an error that `connect` raises immediately must not be emitted before the driver
    // listens.
    await sleep(pauseMs);
    const index = attempts % hosts.length;
    attempts += 1;
    return path ? { path } : { host: hosts[index], port: ports[index] };
  };
}

/** A connection attempt. The driver (3.4.9) receives its socket after the TLS handshake, and opens no TLS itself. */
export interface OpenedSocket {
  /**
   * Resolves to the stream that the driver uses as its connection. If the attempt fails, so does the driver's first
   * write.
   */
  readonly socket: Promise<Duplex>;
  /** Ends the attempt, which then fails, or ends the connection. */
  destroy(): void;
}

/** Opens a socket to an address, and makes the TLS handshake. Has no time limit; `destroy` ends the attempt. */
export function openSocket(address: Address, tls: TlsSettings | undefined): OpenedSocket {
  const plainSocket = connect('path' in address ? address : { ...address, port: address.port ?? 0, noDelay: true });
  let current: Socket = plainSocket;
  // If a server closes each new connection, the driver would otherwise reconnect until the deadline of the statement.
  plainSocket.once('end', () => {
    if (plainSocket.bytesRead === 0) plainSocket.destroy(new ConnectionLost());
  });
  // With TLS, only the TLS socket may be destroyed: a write to a destroyed socket below it ends the process with EBADF.
  const ending = new AbortController();
  const destroy = () => {
    ending.abort(new ConnectionLost());
    current.destroy();
  };
  if (tls === undefined) return { socket: Promise.resolve(plainSocket), destroy };
  const host = 'host' in address ? (address.host ?? '') : '';
  const beginTls = () => {
    const options = { ...tls.optionsFor(host), ...(tls.isDirect && { ALPNProtocols: ['postgresql'] }) };
    current = connectTls({ socket: plainSocket, ...(!isIP(host) && { servername: host }), ...options });
    return current;
  };
  const socket = secure(plainSocket, tls, beginTls, ending.signal).catch((error) => {
    destroy();
    return failingStream(error);
  });
  return { socket, destroy };
}

/** SSLRequest, and the response of a server that uses TLS (PostgreSQL 18, 54.2.10). */
const tlsRequest = Buffer.of(0, 0, 0, 8, 4, 210, 22, 47);
const tlsAccepted = 'S';

/** Secures a socket. Returns the TLS socket, or the socket itself if the server rejects TLS and TLS is optional. */
async function secure(
  plainSocket: Socket,
  { isOptional, isDirect }: TlsSettings,
  beginTls: () => Socket,
  signal: AbortSignal,
): Promise<Socket> {
  // An error emitted before the driver listens would end the process. `destroyed` shows the error later.
  plainSocket.on('error', () => {});
  await once(plainSocket, 'connect', { signal });
  if (!isDirect) {
    plainSocket.write(tlsRequest);
    const [response] = await once(plainSocket, 'data', { signal });
    // Any further bytes are not encrypted, and must not be mistaken for part of the session (CVE-2021-23222).
    if (response.length !== 1) throw new ConnectionLost();
    if (String(response) !== tlsAccepted && isOptional) return plainSocket;
    if (String(response) !== tlsAccepted) throw new ConnectionLost(noTlsMessage);
  }
  const secured = beginTls();
  secured.on('error', () => {});
  await once(secured, 'secureConnect', { signal });
  if (secured.destroyed) throw new ConnectionLost();
  return secured;
}

/**
 * Returns a stream that fails on the driver's first write. Without a socket, the driver does not try the next host. If
 * a socket ends before that write, the driver writes nothing to the next one.
 */
function failingStream(error: Error): Duplex {
  return new Duplex({ read() {}, write: (_chunk, _encoding, done) => done(error) });
}
