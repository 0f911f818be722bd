import { constants, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import * as limits from '../limits.ts';

interface Connection {
  readonly session: ServerHttp2Session;
  readonly socket: Socket;
  /** When each stream that is open was opened, the oldest first, on the clock of `performance.now()`. */
  readonly streams: Map<ServerHttp2Stream, number>;
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
      ...{ session, socket: accepted, streams: new Map(), idleSince, hasServed: false, endsAt: undefined },
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

function watch(connection: Connection, stream: ServerHttp2Stream): void {
  connection.streams.set(stream, performance.now());
  stream.on('error', passOver);
  stream.on('close', () => {
    connection.streams.delete(stream);
    connection.idleSince = performance.now();
    if (stream.rstCode === constants.NGHTTP2_NO_ERROR) connection.hasServed = true;
  });
}

/** An error of a stream ends that stream; without a listener it would end the process. */
function passOver(): void {}

function check(connection: Connection, now: number): void {
  const { session, socket, streams, idleSince, hasServed, endsAt } = connection;
  if (endsAt !== undefined) {
    if (now >= endsAt) socket.destroy();
    return;
  }
  endSlowStreams(connection, now);
  const idleMs = streams.size === 0 ? now - idleSince : 0;
  if (idleMs >= (hasServed ? limits.http2IdleTimeoutMs : limits.headersTimeoutMs)) session.close();
  if (session.closed || session.destroyed) {
    connection.endsAt = now + (streams.size === 0 ? lingerMs : limits.callTimeoutMs);
  }
}

/** Ends a stream after an absolute time, however steadily it trickles, and its connection with it. */
function endSlowStreams({ session, streams }: Connection, now: number): void {
  for (const [stream, openedAt] of streams) {
    if (now - openedAt < limits.requestTimeoutMs) return;
    stream.close(constants.NGHTTP2_CANCEL);
    session.close();
  }
}
