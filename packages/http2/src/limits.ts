import type { HeaderLimits } from './header-decoder.ts';

/** What one client may cost. Every bound is the caller's to choose. */
export interface Http2Limits extends HeaderLimits {
  /** Open sockets; those above are closed at once. */
  readonly connectionsMax: number;
  /** Requests under way on a connection; RFC 9113 advises at least 100. */
  readonly streamsMax: number;
  /**
   * Bytes of a body that a stream holds until they are released, and of all bodies of a connection. The first is not below 65,535,
   * the second above it: a client may send so much before it knows of another bound (RFC 9113, 6.9.2).
   */
  readonly streamWindow: number;
  readonly connectionWindow: number;
  /** A header block in all its frames. Above `headerBytesMax` the stream is refused, above this the connection ends. */
  readonly headerBlockBytesMax: number;
  /**
   * Streams that may be given up at once, by either side, a second after that, and for every answer that was taken. At once not
   * below `streamsMax`: a client whose own caller has gone gives up all that it has under way.
   */
  readonly resetBurst: number;
  readonly resetRate: number;
  readonly resetsPerAnswer: number;
  /** A client that gives up a stream after this long is not counted: it waited, and can't do so often. */
  readonly quickResetMs: number;
  /**
   * Frames that bring no request further (pings, settings, priorities, window updates): the same, and what a stream earns at its
   * beginning and for every frame of an answer's body.
   */
  readonly idleFrameBurst: number;
  readonly idleFrameRate: number;
  readonly idleFramesPerStream: number;
  /** A connection that never had a request answered is ended after this long without one. */
  readonly headersTimeoutMs: number;
  /** ... and one that had. */
  readonly idleTimeoutMs: number;
  /**
   * A stream that is not answered after this long is given up, and its connection ended, however steadily it trickles; ended too
   * is one that owes the rest of a frame or of a header block for so long.
   */
  readonly requestTimeoutMs: number;
  /** How long a client may take nothing of what is written. */
  readonly blockedTimeoutMs: number;
  /** How long a client that was answered early, or told to go, may go on sending: ended at once, it might not see the answer. */
  readonly lingerMs: number;
  /** How long requests under way may take on a connection that takes no new ones. */
  readonly closingTimeoutMs: number;
  /** ... when the server is closed. */
  readonly drainTimeoutMs: number;
  /** How often the time limits are looked at. */
  readonly checkEveryMs: number;
}
