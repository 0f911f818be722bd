import { fieldRules } from '@order-gateway/domain/orders';

// Every bound of the servers in one place, each with its reason. Those of the database's queues are in `queue-limits.ts` of
// packages/postgres, and those of fields and lists in packages/domain, because they are part of the API.

/** The largest body or message, in bytes: an order with every field at its limit takes about 20 KiB as UTF-8. */
export const messageBytesMax = 65_536;

/** The largest limit that a method can set: a brand with its logo in base64. */
export const messageBytesMaxOfAny = 6 * messageBytesMax;

/** Bytes of all bodies that are incomplete or wait for their turn, over both ports: 512 of the largest. */
export const bodyBytesOfAllMax = 512 * messageBytesMax;

/** Larger bodies take turns: no ordinary order is as large. */
export const largeBodyBytes = 8_192;

/** Bytes of large bodies that calls get in one turn of the event loop: 3 ms of work, for which new connections wait. */
export const largeBodyBytesPerTurn = 524_288;

/** The largest response: a page of 100 orders with the longest texts takes half of it. gRPC clients accept 4 MiB. */
export const responseBytesMax = 1_048_576;

/** The time for one call from its headers to its response. A client may ask for less, but not for more. */
export const callTimeoutMs = 5_000;

/** A client that allows less time causes its `deadline_exceeded` itself. More time counts as slow in the alert GatewaySlow. */
export const fairTimeoutMs = 500;

/** The headers of a request, in HTTP/1.1 and HTTP/2. Ours take a few hundred bytes; proxies add some. */
export const headerBytesMax = 16_384;

/** A value in a path: the longest order_id, of code points of four bytes each, percent-encoded. */
export const pathParameterMax = fieldRules.order_id.lengthMax * '%F0%9F%98%80'.length;

/** A connection that has begun a request but not sent its headers after this long is closed, up to two checks later. */
export const headersTimeoutMs = 5_000;

/** A request that is not complete after this long is closed, even if it keeps sending. */
export const requestTimeoutMs = 10_000;

/** How often the connections of both servers are checked against their time limits. */
export const connectionsCheckEveryMs = 1_000;

/**
 * An HTTP/1.1 connection whose client reads nothing of a response for this long is closed. Longer than the time limits
 * above, because those get a response.
 */
export const responseTakenTimeoutMs = 15_000;

/**
 * Pipelined requests of one HTTP/1.1 connection that wait for their responses; with more, it is closed. Node.js would
 * buffer some thousand, 20 MB, for a client that reads no response, and common clients pipeline only a few.
 */
export const pipelinedRequestsMax = 250;

/** An idle HTTP/1.1 connection stays open this long for the next request, longer than common load balancers' 60 s. */
export const keepAliveTimeoutMs = 65_000;

/** A connection that was opened ahead of use, as pools and load balancers do, may wait this long for its first request. */
export const unusedTimeoutMs = 65_000;

/** The files that the process may have open; infinite where the system has no such limit. */
export const openFilesMax = readOpenFilesMax();

/**
 * Connections of each port: far above what a process can serve. Where few files may be open, the two ports take four fifths of
 * them; the rest are for the database, webhooks and logs.
 */
export const connectionsMax = Math.min(10_000, Math.floor(openFilesMax * 0.4));

/**
 * Connections of a port that wait to be accepted, at most net.core.somaxconn. With Node.js's 511, a client may have to connect again
 * after a second while others open 2,000 a second.
 */
export const backlogMax = 4_096;

/** Connections of the admin port: only scrapers and operators connect. */
export const adminConnectionsMax = 100;

/** The limits of checking credentials in one process (docs/decisions/004-credential-cache.md). */
export const credentialLimits = {
  /**
   * How long a cached account is valid. A revoked secret must stop within 1 s in every process, and this limit needs no
   * message between processes. The rest of the second is for the lookup itself.
   */
  cacheLifeMs: 800,
  /** An account in use is refreshed in the background at this age, so that no request of a busy merchant waits. */
  refreshAgeMs: 400,
  /** Cached accounts, about 1 KB each. The ones read longest ago are dropped first. Unknown ids are never cached. */
  cachedAccountsMax: 10_000,
  /**
   * Pending lookups of ids that are not cached: half a second of a flood of unknown ids, in which a merchant's first call may
   * be. Above it the call is `overloaded` immediately. Lookups are batched, so these take a handful of statements.
   */
  uncachedLookupsMax: 4_096,
  /**
   * Credentials that do not match are rejected this long after their lookup began. Finding an account takes longer than
   * finding none, which many calls would reveal. This is far above the time of a lookup.
   */
  rejectedAfterMs: 25,
  /** Cached hashes of secrets that were valid. */
  hashedSecretsMax: 10_000,
};

/** Buckets of each rate limit. With more, the one used longest ago is dropped. */
export const rateBucketsMax = 10_000;

/**
 * Log lines per second for each code and account, or for all unauthenticated callers: a flood's lines would cost more than
 * its responses.
 */
export const callLinesPerSecond = 10;

/** Logos kept in memory, at most 8 MB: a busy merchant's is loaded with every first page of a customer. */
export const cachedLogosMax = 32;

/** When calls are rejected as overloaded, or wait, before their work begins (docs/decisions/037-overload.md). */
export const admissionLimits = {
  /** Calls in flight of all accounts: the work of a fifth of a second. */
  callsMax: 2_048,
  /** The same while orders wait too long: one full batch. */
  callsMaxWhenSlow: 1_024,
  /** How long storing an order may take before that: longer than an occasional stall of a disk. */
  orderAgeMaxMs: 500,
  /** Active calls. If they fill one turn of the event loop, it takes 25 ms. */
  activeMax: 256,
  /** Active calls of an account that never wait: too few to delay the others. */
  activeMin: 16,
};

/**
 * How long requests are accepted by default while health checks already fail. HAProxy and Kubernetes check every 2 s and 10
 * s by default; a load balancer that checks less often than every 2 s needs a longer time.
 */
export const drainDelayMs = 5_000;

/** How long calls in flight may take after a request to stop the process; then their connections are closed. */
export const drainTimeoutMs = 3_000;

/** A health check uses a check of the database that is at most this old: anyone may ask, and each check is a commit. */
export const readinessCheckEveryMs = 1_000;

/** A check that takes longer is not ready: an orchestrator's probe waits about as long. */
export const readinessCheckTimeoutMs = 2_000;

/**
 * How often the files of the TLS certificate are read again: a renewed one is valid for weeks, and a wrong one should be
 * noticed soon.
 */
export const tlsCheckEveryMs = 10_000;

/** A TLS connection that is not established after this long is closed. */
export const tlsHandshakeTimeoutMs = 5_000;

/** The limits of the gRPC port. Node.js's defaults are stated where they are relied on. */
export const http2Limits = {
  /** Calls in flight on one connection. RFC 9113, 6.5.2 advises at least 100. */
  maxConcurrentStreams: 250,
  /** An unauthenticated connection still counts for this long after it closes, so reconnecting gains nothing. */
  unauthenticatedCountsMs: 1_000,
  /**
   * Calls in flight on all authenticated connections, and on all others. With 9 connections or more, each gets less than
   * the limit above.
   */
  streamsOfAllSessions: 2_048,
  /**
   * The minimum of an authenticated connection, 3,200 calls per second at 5 ms each, and the maximum of an unauthenticated
   * one.
   */
  concurrentStreamsMin: 16,
  /** A message at its limit arrives without waiting for a window update. */
  initialWindowSize: messageBytesMax,
  /** Metadata of a call. An ordinary call has eight entries; the tracing of clients and proxies adds some. */
  metadataBytesMax: headerBytesMax,
  metadataEntriesMax: 100,
  /** Larger metadata ends a call with a reset instead of an error with details. Clients send at most 64 KiB. */
  maxHeaderListSize: 4 * headerBytesMax,
  maxHeaderListPairs: 400,
  /** Megabytes that one connection may use (Node.js's default). */
  maxSessionMemory: 10,
  /** Entries of one SETTINGS frame; RFC 9113 names six (Node.js's default). */
  maxSettings: 32,
  /** Frames that violate the protocol: a working client sends none. A tenth of Node.js's default, because each costs a stream. */
  maxSessionInvalidFrames: 100,
  /**
   * Rapid reset, CVE-2023-44487: streams that a client may reset, at once and per second. Clients cancel calls too, at most
   * all that are in flight, and closing the connection would cost its other calls. So the limit is twice that number, half
   * of Node.js's default.
   */
  streamResetBurst: 500,
  streamResetRate: 33,
  /** A call whose request or response is not complete after this long is reset. Only a watch of health may take longer. */
  streamTimeoutMs: requestTimeoutMs,
  /**
   * Streaming calls in flight, of health checks and reflection, on one connection and on all: a client watches one service or a
   * few, and a call takes about 30 KB. Above the second, the oldest unauthenticated one ends, so that they can't all be used up.
   */
  streamingCallsPerConnection: 8,
  streamingCallsMax: 1_000,
  /** The request bytes of one call of reflection: a tool that reads all our services sends less than 2 KB. */
  streamingRequestBytesMax: 16_384,
  /** A connection without calls is closed after this long; gRPC clients reconnect automatically. */
  idleTimeoutMs: 300_000,
  unusedTimeoutMs,
  connectionsMax,
  /** How long a client has to react to GOAWAY before its socket is closed. */
  goawayTimeoutMs: 1_000,
  checkEveryMs: connectionsCheckEveryMs,
  drainTimeoutMs,
};

/**
 * The limits of unauthenticated gRPC connections that reset their streams or send tiny frames
 * (docs/decisions/047-unauthenticated-callers.md).
 */
export const penaltyLimits = {
  /** Penalties that one network may take at once and per second. Ordinary clients have valid credentials. */
  perSecond: 20,
  /**
   * Connections per second that a network may open after it exceeded this limit: each costs 1 to 3 ms of CPU time during an
   * attack.
   */
  connectionsPerSecond: 50,
  /** Connections of such a network that wait, for 2 s at most. */
  waitingMax: 100,
  /** The restriction ends when the network has not exceeded its limit for this long, and no connection waits. */
  restrictedMs: 1_000,
  restrictedNetworksMax: 100,
  /** Frames of a message that may be shorter than this: prefixes and last frames are short, and few clients send more. */
  tinyFrameBytes: 64,
  tinyFramesMax: 64,
};

/** Responses that are sent late, so that callers that wait for them send less. */
const pauseLimits = {
  pauseMs: 1_000,
  /** Each waits a millisecond longer for each that waits already, so that at most 1,000 are sent per second, but no longer than this. */
  pauseMaxMs: 8_000,
  /** One for each connection of both ports. Above this number, others are sent immediately. */
  pausedMax: 2 * connectionsMax,
};

/** The limits of calls without valid credentials in one process (docs/decisions/047-unauthenticated-callers.md). */
export const unauthenticatedLimits = {
  /** Pages, and failed authentications, of one public network per second: a carrier's NAT opens dozens of pages. */
  perNetwork: 100,
  /** Failed authentications of all networks per second, such as those of a few misconfigured clients. */
  rejectedPerSecond: 200,
  /** Pages rendered at the same time. One takes 0.1 ms of CPU time, so they delay merchants by at most 3 ms. */
  inFlightMax: 32,
  /** Pages that wait for a slot. Above this number, or after this time, they are `rate_limited`. */
  waitingMax: 1_000,
  waitingTimeoutMs: 1_000,
  ...pauseLimits,
};

/** `overloaded` and `rate_limited` responses to calls with valid credentials (docs/decisions/037-overload.md). */
export const rejectionLimits = {
  /** Sent at once, per second, in 5 % of a core's time. The others wait, as clients that ignore `Retry-After` retry at once. */
  immediatePerSecond: 500,
  ...pauseLimits,
};

/** The limits of webhook deliveries in one process. */
export const webhookLimits = {
  /** The time for one attempt, from the lookup of its host to the end of its response. */
  attemptTimeoutMs: 15_000,
  /** Only the status of a response counts, so larger responses are cut off. */
  responseBytesMax: 8_192,
  /** An idle connection waits this long for the next request. Common servers close one after 5 s or more. */
  idleConnectionMs: 4_000,
  /** Attempts in flight: 60 busy endpoints that begin to hang at the same time leave room for the others. */
  attemptsMax: 1_024,
  /** Attempts in flight to endpoints whose last attempt failed or that are slow now, so that others are not delayed. */
  failingAttemptsMax: 256,
  /** Attempts in flight to one endpoint, 160 per second if each takes 100 ms, and to one whose last attempt failed. */
  perEndpoint: 16,
  perFailingEndpoint: 1,
  /** While an attempt takes longer than this, its endpoint counts as slow. */
  slowAfterMs: 1_000,
  /** How often due deliveries are looked for. Those of this process are looked for immediately. */
  pollEveryMs: 500,
  /**
   * The pause between two lookups under load, so that each finds several deliveries, and its minimum relative to the time that
   * the lookup took, up to `pollEveryMs`: on Citus it takes longer, and with pauses of 20 ms it took half of the CPU time
   * of the database.
   */
  pollPauseMs: 20,
  pollPauseRatio: 3,
  /** A test message that a merchant sends: its call waits for the response. */
  pingTimeoutMs: 3_000,
  /** Such messages in flight, and those of one merchant. */
  pingsMax: 32,
  pingsPerMerchant: 2,
};

/** The limits of open payment pages that wait for a change in one process (docs/decisions/062-pages-wait.md). */
export const pageWatchLimits = {
  /**
   * Any more get a response at once, and ask again after 5 s. Those of one order are the tabs of one customer. A merchant's
   * share is as many as are free: one merchant alone takes half. They are not counted by address, because pages behind a proxy
   * share one.
   */
  waitersMax: 1_000,
  waitersPerOrder: 8,
  /** How often the orders of all pages are read, and how many in one statement: at most 16 statements a second. */
  pollEveryMs: 1_000,
  pollPauseMs: 0,
  batchMax: 64,
  lookupTimeoutMs: 5_000,
};

/** The limits of checking logos in one process (docs/decisions/066-decode-one-logo-at-a-time.md). */
export const logoCheckLimits = {
  /** The scans of a JPEG. Encoders write up to six for each of four components. 32 scans of the largest image take 0.4 s. */
  scansMax: 32,
  /** The CPU time of decoding one logo. The largest ordinary one takes 0.2 s, and its thread up to 100 MB. */
  cpuMs: 1_000,
  /** Logos that are decoded or wait. Any more could miss their deadline. */
  waitingMax: 16,
};

/** The limits of calls that wait for events in one process. */
export const eventWatchLimits = {
  /** `Prefer: wait` in seconds: proxies commonly give up after 30 or 60. */
  waitSecondsMax: 20,
  /** Waiting calls of one merchant, and of all. Any more get their page immediately. */
  waitersPerMerchant: 20,
  waitersMax: 2_000,
  /** Streams of one merchant, their duration, and the interval of their heartbeats. */
  streamsPerMerchant: 10,
  streamMs: 3_600_000,
  heartbeatMs: 10_000,
  /** Events that a stream reads at a time. For a slow reader, no more of them are kept in memory. */
  streamPageMax: 100,
  /** The wait before a merchant with too many streams tries again: one may end by then. */
  streamsRetryAfterMs: 1_000,
  /** How often new events of other processes are looked for, and the pause between two looks under load. */
  pollEveryMs: 500,
  pollPauseMs: 20,
};

function readOpenFilesMax(): number {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  return Number(userLimits?.open_files?.soft) || Number.POSITIVE_INFINITY;
}
