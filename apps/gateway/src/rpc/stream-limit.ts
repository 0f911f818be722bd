import type { Http2SecureServer, Http2Server, Http2Session } from 'node:http2';
import type { http2Limits } from '../limits.ts';

/**
 * Shares the calls in flight out among the connections: clients queue what exceeds their share, at no cost for the gateway.
 * Rejecting a call costs nearly as much as creating an order, as most of both is the stream itself (decision 027). Returns what
 * makes a connection a client's, which gets a client's share.
 */
export function shareStreams(
  server: Http2Server | Http2SecureServer,
  limits: typeof http2Limits,
): (session: Http2Session) => void {
  /** A power of two, so that it does not change with every connection. */
  const shareOf = (sessions: number, min: number, max: number) => {
    const share = 2 ** Math.floor(Math.log2(limits.streamsOfAllSessions / Math.max(1, sessions)));
    return Math.min(max, Math.max(min, share));
  };
  const group = (min: number, max: number) => ({ sessions: new Set<Http2Session>(), min, max, limit: max });
  const clients = group(limits.concurrentStreamsMin, limits.maxConcurrentStreams);
  const strangers = group(1, limits.concurrentStreamsMin);

  const send = (session: Http2Session) => {
    // Node.js closes a session with too many settings that are not acknowledged.
    if (session.destroyed || session.closed || session.pendingSettingsAck) return;
    const { limit } = clients.sessions.has(session) ? clients : strangers;
    if (session.localSettings.maxConcurrentStreams !== limit) session.settings({ maxConcurrentStreams: limit });
  };
  const resize = (of: typeof clients) => {
    const limit = shareOf(of.sessions.size, of.min, of.max);
    if (limit === of.limit) return;
    of.limit = limit;
    for (const session of of.sessions) send(session);
  };
  const resizeStrangers = () => {
    resize(strangers);
    // Of connections to come: a client may never acknowledge later settings.
    const maxConcurrentStreams = shareOf(strangers.sessions.size + 1, 1, limits.maxConcurrentStreams);
    server.updateSettings({ maxConcurrentStreams });
  };

  const forgetStranger = (session: Http2Session) => {
    if (strangers.sessions.delete(session)) resizeStrangers();
  };

  server.on('session', (session) => {
    strangers.sessions.add(session);
    resizeStrangers();
    session.on('localSettings', () => send(session));
    session.once('close', () => {
      if (clients.sessions.delete(session)) resize(clients);
      else setTimeout(forgetStranger, limits.strangerCountsMs, session).unref();
    });
  });
  return (session) => {
    if (session.destroyed || !strangers.sessions.delete(session)) return;
    clients.sessions.add(session);
    resize(clients);
    resizeStrangers();
    send(session);
  };
}
