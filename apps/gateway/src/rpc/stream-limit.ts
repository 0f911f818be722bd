import type { Http2SecureServer, Http2Server, Http2Session } from 'node:http2';
import type { http2Limits } from '../limits.ts';

/**
 * Shares the permitted number of calls in flight among the connections. Clients queue the calls above their share,
 * which costs the gateway nothing. Rejecting a call, in contrast, costs nearly as much as creating an order, because
 * the stream itself causes most of the cost of both (docs/decisions/037-overload.md). Returns the function that
 * promotes a connection to the share of an authenticated one.
 */
export function shareStreams(
  server: Http2Server | Http2SecureServer,
  limits: typeof http2Limits,
): (session: Http2Session) => void {
  /**
   * Returns the share of a connection. Between its bounds, it is a power of two, so that it does not change with every
   * connection.
   */
  const shareOf = (sessions: number, min: number, max: number) => {
    const share = 2 ** Math.floor(Math.log2(limits.streamsOfAllSessions / Math.max(1, sessions)));
    return Math.min(max, Math.max(min, share));
  };
  const group = (min: number, max: number) => ({ sessions: new Set<Http2Session>(), min, max, limit: max });
  const authenticated = group(limits.concurrentStreamsMin, limits.maxConcurrentStreams);
  const unauthenticated = group(1, limits.concurrentStreamsMin);

  const send = (session: Http2Session) => {
    // Node.js closes a session with too many unacknowledged settings.
    if (session.destroyed || session.closed || session.pendingSettingsAck) return;
    const { limit } = authenticated.sessions.has(session) ? authenticated : unauthenticated;
    if (session.localSettings.maxConcurrentStreams !== limit) session.settings({ maxConcurrentStreams: limit });
  };
  const resize = () => {
    for (const kind of [authenticated, unauthenticated]) {
      const limit = shareOf(kind.sessions.size, kind.min, kind.max);
      if (limit === kind.limit) continue;
      kind.limit = limit;
      for (const session of kind.sessions) send(session);
    }
    // The initial share of a new connection takes all connections of both kinds into account, because the client may
    // never acknowledge a later share.
    const sessions = authenticated.sessions.size + unauthenticated.sessions.size + 1;
    server.updateSettings({ maxConcurrentStreams: shareOf(sessions, 1, limits.maxConcurrentStreams) });
  };

  const removeUnauthenticated = (session: Http2Session) => {
    if (unauthenticated.sessions.delete(session)) resize();
  };

  server.on('session', (session) => {
    unauthenticated.sessions.add(session);
    resize();
    session.on('localSettings', () => send(session));
    session.once('close', () => {
      if (authenticated.sessions.delete(session)) resize();
      else setTimeout(removeUnauthenticated, limits.unauthenticatedCountsMs, session).unref();
    });
  });
  return (session) => {
    if (session.destroyed || !unauthenticated.sessions.delete(session)) return;
    authenticated.sessions.add(session);
    resize();
    send(session);
  };
}
