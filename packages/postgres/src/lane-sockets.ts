import { once } from 'node:events';
import { connect, isIP, type NetConnectOpts, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectSecurely } from 'node:tls';
import postgres from 'postgres';

/** Where a URL wants connections to go, one of some hosts or a Unix socket, and how to be secured, as the driver reads it. */
export interface SocketTarget {
  readonly host: readonly string[];
  readonly port: readonly number[];
  /** Of the Unix socket; false or empty for none. */
  readonly path: unknown;
  /** `require`, `allow`, `prefer`, `verify-full`; false or empty for none. */
  readonly ssl: unknown;
  /** `direct`, or nothing. */
  readonly sslnegotiation?: unknown;
}

/** Asks whether the server speaks TLS (PostgreSQL 18, 54.2.11), which answers with one byte. */
const sslRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const yes = Buffer.from('S');

/** What the driver makes of a URL. It is asked by a client that never connects. */
export function targetOf(url: string): SocketTarget {
  return postgres(url).options;
}

/** The same hosts, of which the first is the last to be tried. */
export function fromNextHost(target: SocketTarget): SocketTarget {
  const turned = <Item>([first, ...others]: readonly Item[]) => (first === undefined ? [] : [...others, first]);
  return { ...target, host: turned(target.host), port: turned(target.port) };
}

/**
 * Gives the `socket` option of postgres.js: connects to the first host that lets it, and secures the connection as the driver
 * does. Once `over` aborts it opens no more, rejects what is still connecting, and cuts off what is open.
 */
export function socketOpener(over: AbortSignal, target: SocketTarget): () => Promise<Socket> {
  const { host: hosts, port: ports, path } = target;
  const open = async (address: NetConnectOpts, host: string): Promise<Socket> => {
    over.throwIfAborted();
    const socket = connect({ ...address, noDelay: true });
    try {
      await once(socket, 'connect', { signal: over });
      const ready = await secured(socket, host, target, over);
      // Over TLS Node.js may never close what has ended. While it connects, the driver takes only an error for a reason not to come
      // again at once; later there must be none, as it forgets the statements that come between an error and the close.
      const heard = ready.bytesRead;
      ready.once('end', () => ready.destroy(ready.bytesRead === heard ? hungUp() : undefined));
      // The driver ends it in words, which a server that hangs never reads.
      const cutOff = () => ready.destroy();
      over.addEventListener('abort', cutOff);
      ready.once('close', () => over.removeEventListener('abort', cutOff));
      return ready;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  };
  return async () => {
    if (typeof path === 'string' && path !== '') return open({ path }, 'localhost');
    let refusal: unknown;
    for (const [index, host] of hosts.entries()) {
      try {
        return await open({ host, port: ports[index] ?? 0 }, host);
      } catch (error) {
        refusal = error;
      }
    }
    throw refusal;
  };
}

async function secured(socket: Socket, host: string, { ssl, sslnegotiation }: SocketTarget, over: AbortSignal) {
  if (!ssl) return socket;
  const isDirect = sslnegotiation === 'direct';
  const gone = new AbortController();
  socket.once('close', () => gone.abort(hungUp()));
  const signal = AbortSignal.any([over, gone.signal]);
  if (!isDirect && !(await speaksTls(socket, signal))) {
    if (ssl === 'prefer') return socket;
    throw Object.assign(new Error('the database speaks no TLS'), { code: 'ECONNREFUSED' });
  }
  const options: ConnectionOptions = {
    socket,
    host,
    rejectUnauthorized: ssl !== 'require' && ssl !== 'allow' && ssl !== 'prefer',
  };
  // A name may be asked for, and no address (RFC 6066, 3).
  if (isIP(host) === 0) options.servername = host;
  if (isDirect) options.ALPNProtocols = ['postgresql'];
  const secure = connectSecurely(options);
  // One that was given up tells of it later, when nobody waits any more.
  secure.on('error', () => {});
  await once(secure, 'secureConnect', { signal });
  return secure;
}

async function speaksTls(socket: Socket, signal: AbortSignal): Promise<boolean> {
  socket.write(sslRequest);
  const [answer]: Buffer[] = await once(socket, 'data', { signal });
  // More than one byte was put in by somebody who wants it to be taken for a part of what is secured (CVE-2021-23222).
  if (answer?.length !== 1) throw Object.assign(new Error('no answer about TLS'), { code: 'ECONNREFUSED' });
  return answer.equals(yes);
}

function hungUp(): Error {
  return Object.assign(new Error('the database hung up'), { code: 'ECONNRESET' });
}
