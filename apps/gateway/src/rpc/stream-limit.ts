import type { Http2SecureServer, Http2Server, Http2Session } from 'node:http2';

export interface StreamLimits {
  /** Calls in flight on one connection. */
  readonly maxConcurrentStreams: number;
  /** Calls in flight on all connections; the share of each is a power of two. */
  readonly streamsOfAllSessions: number;
  /** The least share of a connection, and all that one without a client's credentials has. */
  readonly concurrentStreamsMin: number;
}

/** The shares of the connections of a server. */
export interface StreamShares {
  /** The connection is a client's: it gets its share. */
  known(session: Http2Session): void;
}

/**
 * Shares the calls in flight out among the connections: clients queue what exceeds their share, at no cost for the gateway.
 * Rejecting a call costs nearly as much as creating an order, as most of both is the stream itself (decision 027).
 */
export function shareStreams(server: Http2Server | Http2SecureServer, limits: StreamLimits): StreamShares {
  const sessions = new Set<Http2Session>();
  const clients = new WeakSet<Http2Session>();
  let limit = limits.maxConcurrentStreams;

  const limitNow = () => {
    const share = 2 ** Math.floor(Math.log2(limits.streamsOfAllSessions / Math.max(1, sessions.size)));
    return Math.min(limits.maxConcurrentStreams, Math.max(limits.concurrentStreamsMin, share));
  };
  const send = (session: Http2Session) => {
    // Node.js closes a session with too many settings that are not acknowledged.
    if (session.destroyed || session.closed || session.pendingSettingsAck) return;
    const maxConcurrentStreams = clients.has(session) ? limit : Math.min(limit, limits.concurrentStreamsMin);
    if (session.localSettings.maxConcurrentStreams !== maxConcurrentStreams) session.settings({ maxConcurrentStreams });
  };
  const sendAll = () => {
    if (limit === limitNow()) return;
    limit = limitNow();
    for (const session of sessions) send(session);
  };

  server.on('session', (session) => {
    sessions.add(session);
    session.on('localSettings', () => send(session));
    session.once('close', () => {
      sessions.delete(session);
      sendAll();
    });
    sendAll();
  });
  return {
    known(session) {
      if (clients.has(session)) return;
      clients.add(session);
      send(session);
    },
  };
}
