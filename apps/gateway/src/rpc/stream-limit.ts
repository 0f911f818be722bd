import type { Http2Server, ServerHttp2Session } from 'node:http2';

export interface StreamLimits {
  /** Calls in flight on one connection. */
  readonly maxConcurrentStreams: number;
  /** Calls in flight on all connections; the share of each is a power of two. */
  readonly streamsOfAllSessions: number;
  /** The least share of a connection. */
  readonly concurrentStreamsMin: number;
}

/**
 * Shares the calls in flight out among the connections: clients queue what exceeds their share, at no cost for the gateway.
 * Rejecting a call costs nearly as much as creating an order, as most of both is the stream itself (decision 027).
 */
export function shareStreams(server: Http2Server, limits: StreamLimits): void {
  const sessions = new Set<ServerHttp2Session>();
  let limit = limits.maxConcurrentStreams;

  const limitNow = () => {
    const share = 2 ** Math.floor(Math.log2(limits.streamsOfAllSessions / Math.max(1, sessions.size)));
    return Math.min(limits.maxConcurrentStreams, Math.max(limits.concurrentStreamsMin, share));
  };
  const send = (session: ServerHttp2Session) => {
    // Node.js closes a session with too many settings that are not acknowledged.
    if (session.destroyed || session.closed || session.pendingSettingsAck) return;
    if (session.localSettings.maxConcurrentStreams !== limit) session.settings({ maxConcurrentStreams: limit });
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
}
