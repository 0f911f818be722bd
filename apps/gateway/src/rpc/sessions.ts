import type { Http2Server, ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { callTimeoutMs, type http2Limits } from '../limits.ts';

interface Use {
  openStreams: number;
  /** Whether a client sent a complete request: one that only trickles has not. */
  isUsed: boolean;
  /** Of an unused session its start, else the end of its latest stream, on the clock of `performance.now()`. */
  idleSince: number;
}

export interface Sessions {
  /** Sends GOAWAY to all sessions and lets their calls finish; closes what is left after the drain time. */
  drain(): void;
}

/**
 * Closes the sessions of a server that nobody uses: ones that never made a call, and idle ones. Node.js's own session timeout
 * does not do that, as it starts again with every frame, a PING included.
 */
export function watchSessions(server: Http2Server, limits: typeof http2Limits): Sessions {
  const uses = new Map<ServerHttp2Session, Use>();
  const sockets = new Set<Socket>();

  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('session', (session) => {
    const use: Use = { openStreams: 0, isUsed: false, idleSince: performance.now() };
    uses.set(session, use);
    session.once('close', () => uses.delete(session));
    session.on('stream', (stream) => {
      use.openStreams += 1;
      // An error of a stream ends that stream; without a listener it would end the process.
      stream.on('error', () => {});
      stream.once('close', () => {
        use.openStreams -= 1;
        use.isUsed ||= stream.readableEnded;
        if (use.isUsed) use.idleSince = performance.now();
      });
    });
  });
  // Without a listener an error of a session would end the process; the session closes by itself.
  server.on('sessionError', () => {});

  const timeoutOf = ({ openStreams, isUsed }: Use) => {
    if (!isUsed) return limits.unusedTimeoutMs + (openStreams === 0 ? 0 : callTimeoutMs);
    return openStreams === 0 ? limits.idleTimeoutMs : Number.POSITIVE_INFINITY;
  };
  const sweep = setInterval(() => {
    const now = performance.now();
    for (const [session, use] of uses) {
      if (now - use.idleSince < timeoutOf(use)) continue;
      uses.delete(session);
      // `close()` would leave the socket open until the client closes it, too.
      session.goaway();
      setTimeout(() => session.destroy(), limits.goawayTimeoutMs).unref();
    }
  }, limits.checkEveryMs).unref();
  server.once('close', () => clearInterval(sweep));

  return {
    drain() {
      for (const session of uses.keys()) session.close();
      setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, limits.drainTimeoutMs).unref();
    },
  };
}
