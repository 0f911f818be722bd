import { constants, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import * as limits from '../limits.ts';

interface Connection {
  readonly session: ServerHttp2Session;
  readonly socket: Socket;
  openStreams: number;
  /** Since when there is no stream, on the clock of `performance.now()`. */
  idleSince: number;
  /** Whether a call was ever completed on it. */
  hasServed: boolean;
  /** When the socket is cut off, whatever the other side does. */
  endsAt: number | undefined;
}

export interface Connections {
  /** Lets calls under way finish; what is left after the drain time is cut off. */
  close(): void;
}

/** A session that is closed in an orderly way leaves its socket open until the other side closes it too, or for this long. */
const lingerMs = 1_000;

/**
 * Ends the connections of an HTTP/2 server that are of no use: silent ones, idle ones, those whose calls trickle, and those
 * that do not go when they are asked to. Node.js bounds none of these, and frames without a call do not count as life.
 */
export function guardConnections(server: Http2Server): Connections {
  const connections = new Set<Connection>();
  let accepted: Socket;
  // Node.js makes the session of a socket in its own listener of the same event, so the two are paired here.
  server.prependListener('connection', (socket: Socket) => {
    accepted = socket;
  });
  server.on('session', (session) => {
    const idleSince = performance.now();
    const connection: Connection = {
      ...{ session, socket: accepted, openStreams: 0, idleSince, hasServed: false, endsAt: undefined },
    };
    connections.add(connection);
    connection.socket.once('close', () => connections.delete(connection));
    session.on('error', () => connection.socket.destroy());
    session.on('stream', (stream) => watch(connection, stream));
  });
  const sweep = setInterval(() => {
    const now = performance.now();
    for (const connection of connections) check(connection, now);
  }, limits.connectionsCheckEveryMs).unref();
  server.once('close', () => clearInterval(sweep));
  return {
    close() {
      const endsAt = performance.now() + limits.drainTimeoutMs;
      for (const connection of connections) {
        connection.session.close();
        connection.endsAt = Math.min(connection.endsAt ?? endsAt, endsAt);
      }
      setTimeout(() => {
        for (const { socket } of connections) socket.destroy();
      }, limits.drainTimeoutMs).unref();
    },
  };
}

/** Ends a stream after an absolute time, however steadily it trickles, and its connection with it. */
function watch(connection: Connection, stream: ServerHttp2Stream): void {
  connection.openStreams += 1;
  stream.on('error', () => {});
  const tooSlow = setTimeout(() => {
    stream.close(constants.NGHTTP2_CANCEL);
    connection.session.close();
  }, limits.requestTimeoutMs);
  stream.once('close', () => {
    clearTimeout(tooSlow);
    connection.openStreams -= 1;
    connection.idleSince = performance.now();
    if (stream.rstCode === constants.NGHTTP2_NO_ERROR) connection.hasServed = true;
  });
}

function check(connection: Connection, now: number): void {
  const { session, socket, openStreams, idleSince, hasServed, endsAt } = connection;
  if (endsAt !== undefined) {
    if (now >= endsAt) socket.destroy();
    return;
  }
  const idleMs = openStreams === 0 ? now - idleSince : 0;
  if (idleMs >= (hasServed ? limits.http2IdleTimeoutMs : limits.headersTimeoutMs)) session.close();
  if (session.closed || session.destroyed) {
    connection.endsAt = now + (openStreams === 0 ? lingerMs : limits.callTimeoutMs);
  }
}
