import {
  constants,
  type Http2SecureServer,
  type Http2Server,
  type Http2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { TrustProxy } from '@order-gateway/runtime/remote-address';
import { createConnectionLimit, type Peer, trackSockets } from '../calls/peers/connection-limit.ts';
import { createPenalties } from '../calls/peers/penalties.ts';
import { type http2Limits, penaltyLimits } from '../limits.ts';
import { shareStreams } from './stream-limit.ts';

/** A stream whose request or response is not complete. `beganAt` is a time of `performance.now()`. */
interface OpenStream {
  readonly beganAt: number;
  /** Ends the stream's use of its connection. Does nothing before the request is complete. */
  endUse: () => void;
}

/** How a client uses its session. */
interface SessionUse {
  /** The open streams, oldest first. */
  readonly streams: Map<ServerHttp2Stream, OpenStream>;
  /** Whether the client has ever sent a complete request. */
  isUsed: boolean;
  /** When the session began, its latest complete request arrived, or its last call of `keptCalls` ended. */
  idleSince: number;
  /** The number of health watches and reflection calls in flight. */
  streamingCalls: number;
  /** The number of event streams, which keep the session open. */
  keptCalls: number;
}

/**
 * Enforces the limits of a server's sessions. Closes streams whose request or response takes too long, and sessions
 * that have had no complete request for too long. Node.js's own session timeout is not sufficient, because it restarts
 * with every frame, including a PING.
 */
export function watchSessions(
  server: Http2Server | Http2SecureServer,
  limits: typeof http2Limits,
  trustProxy: TrustProxy | undefined,
) {
  const addPenalty = createPenalties(server, penaltyLimits, trustProxy);
  const uses = new Map<Http2Session, SessionUse>();
  // `destroy()` also sends GOAWAY, which tells the client which calls it can resend (RFC 9113, 6.8).
  const limit = createConnectionLimit<Http2Session>(limits.connectionsMax, (session) => session.destroy());
  const promote = shareStreams(server, limits);
  const destroySockets = trackSockets(server);
  let isDraining = false;
  const streaming = createStreamingCalls(limits, limit.isAuthenticated);

  /** Counts a penalty for a frame that costs the gateway more than the client. */
  const penalize = (session: Http2Session | undefined) => {
    if (session !== undefined && !limit.isAuthenticated(session)) addPenalty(session);
  };
  const useOf = ({ session }: ServerHttp2Stream) => session && uses.get(session);
  const streamsOf = (stream: ServerHttp2Stream) => useOf(stream)?.streams;

  server.on('session', (session) => {
    const use: SessionUse = {
      streams: new Map(),
      isUsed: false,
      idleSince: performance.now(),
      streamingCalls: 0,
      keptCalls: 0,
    };
    uses.set(session, use);
    limit.opened(session);
    session.once('close', () => {
      uses.delete(session);
      limit.closed(session);
    });
    const events = {
      penalize: () => penalize(session),
      startUse: () => limit.use(session),
      isStreaming: streaming.has,
    };
    session.on('stream', (stream: ServerHttp2Stream) => {
      if (isDraining) session.close();
      watchStream(stream, use, events);
    });
  });
  const checking = setInterval(closeLate, limits.checkEveryMs, uses, limits).unref();
  server.once('close', () => clearInterval(checking));

  return {
    /**
     * Counts a health watch or a reflection call until it ends. If there are too many in total, ends the oldest one on
     * an unauthenticated connection, whose client can call again. Returns false if there is no call to end, or if this
     * connection already has too many of these calls.
     */
    admitStreaming(stream: ServerHttp2Stream): boolean {
      const use = useOf(stream);
      return use !== undefined && streaming.admit(stream, use);
    },
    /** Exempts a call from the time limit of streams. The call does not keep its connection open. */
    exemptFromTimeout: (stream: ServerHttp2Stream) => void streamsOf(stream)?.delete(stream),
    /** Exempts a call from the time limit of streams. The call keeps its connection open. */
    keepOpen(stream: ServerHttp2Stream): void {
      streamsOf(stream)?.delete(stream);
      const use = useOf(stream);
      if (use === undefined || stream.closed) return;
      use.keptCalls += 1;
      stream.once('close', () => {
        use.keptCalls -= 1;
        use.idleSince = performance.now();
      });
    },
    /** Returns the peer of a stream's call: the client at this address, and its connection. */
    peerOf: (stream: ServerHttp2Stream, address: string | undefined): Peer => ({
      address,
      markAuthenticated() {
        if (stream.session === undefined || limit.isAuthenticated(stream.session)) return;
        limit.markAuthenticated(stream.session);
        promote(stream.session);
      },
      markIdle: () => streamsOf(stream)?.get(stream)?.endUse(),
    }),
    /**
     * Sends GOAWAY to each session only during its next call, because nginx does not repeat a call that arrives after
     * GOAWAY. That call still gets its response. Sessions that get no further call receive GOAWAY after
     * {@link http2Limits.idleDrainMs}. All calls may finish. The remaining sessions are closed after the drain time.
     */
    drain(): void {
      isDraining = true;
      setTimeout(() => {
        for (const session of uses.keys()) session.close();
      }, limits.idleDrainMs).unref();
      setTimeout(destroySockets, limits.drainTimeoutMs).unref();
    },
  };
}

/** Creates the limit of health watches and reflection calls. */
function createStreamingCalls(limits: typeof http2Limits, isAuthenticated: (session: Http2Session) => boolean) {
  /** All calls in flight, oldest first. */
  const calls = new Set<ServerHttp2Stream>();
  return {
    has: (stream: ServerHttp2Stream) => calls.has(stream),
    admit(stream: ServerHttp2Stream, use: SessionUse): boolean {
      if (use.streamingCalls >= limits.streamingCallsPerConnection) return false;
      if (calls.size >= limits.streamingCallsMax) {
        const oldest = calls.values().find(({ session }) => session === undefined || !isAuthenticated(session));
        if (oldest === undefined) return false;
        calls.delete(oldest);
        oldest.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      }
      use.streamingCalls += 1;
      calls.add(stream);
      stream.once('close', () => {
        use.streamingCalls -= 1;
        calls.delete(stream);
      });
      return true;
    },
  };
}

/** The effects of the events of a session's streams. */
interface StreamEvents {
  /** Counts a penalty for a frame that costs the gateway more than the client. */
  penalize(): void;
  /** Starts a use of the connection. Returns the function that ends it. */
  startUse(): () => void;
  /** Whether a stream is a health watch or a reflection call. */
  isStreaming(stream: ServerHttp2Stream): boolean;
}

/** Tracks a stream until it closes: whether its request is complete, and whether it costs more than it should. */
function watchStream(
  stream: ServerHttp2Stream,
  use: SessionUse,
  { penalize, startUse, isStreaming }: StreamEvents,
): void {
  const open: OpenStream = { beganAt: performance.now(), endUse() {} };
  use.streams.set(stream, open);
  stream.on('close', () => {
    use.streams.delete(stream);
    open.endUse();
    if (stream.rstCode !== constants.NGHTTP2_NO_ERROR) penalize();
  });
  let tinyFrames = 0;
  // Listens only once a reader asks for data, because an earlier listener would take the data from that reader.
  stream.once('resume', () => {
    stream.on('data', ({ length }: Buffer) => {
      if (length < penaltyLimits.tinyFrameBytes && ++tinyFrames > penaltyLimits.tinyFramesMax) penalize();
    });
  });
  stream.on('finish', () => {
    if (stream.readableEnded || isStreaming(stream)) return;
    // The call was rejected before its request was complete. Frames of its message that arrived with its headers
    // are still read, because tiny ones among them must be counted. The rest is not needed (RFC 9113, 8.1). After
    // `close()`, the stream would count towards the limit until Node.js has read the rest, although the client may
    // already open another stream. Therefore, the stream is destroyed.
    stream.resume();
    setImmediate(() => {
      if (!stream.state.remoteClose) stream.destroy();
    });
  });
  stream.on('end', () => {
    // A reset also ends the stream.
    if (stream.closed) return;
    open.endUse = startUse();
    use.isUsed = true;
    use.idleSince = performance.now();
  });
}

/** Closes streams whose request or response takes too long, and sessions without a complete request for too long. */
function closeLate(uses: Map<Http2Session, SessionUse>, limits: typeof http2Limits): void {
  const now = performance.now();
  for (const [session, { streams, isUsed, idleSince, keptCalls }] of uses) {
    for (const [stream, { beganAt }] of streams) {
      if (now - beganAt < limits.streamTimeoutMs) break;
      stream.close(constants.NGHTTP2_CANCEL);
    }
    if (keptCalls > 0) continue;
    const openTimeoutMs = isUsed ? limits.idleTimeoutMs : limits.unusedTimeoutMs;
    if (now - idleSince < openTimeoutMs + (streams.size === 0 ? 0 : limits.streamTimeoutMs)) continue;
    uses.delete(session);
    // `close()` would keep the socket open until the client closes it.
    if (!session.destroyed) session.goaway();
    setTimeout(() => session.destroy(), limits.goawayTimeoutMs).unref();
  }
}
