import { fieldRules } from '@order-gateway/domain/orders';

// Every bound of the servers is here, with its reason. The bounds of the database's queues are in `queue-limits.ts` of
// packages/postgres. The bounds of fields and lists are in packages/domain, because they are part of the API.

/**
 * The usual maximum size of a body or message, in bytes: an order with every field at its limit takes about 20 KiB as
 * UTF-8.
 */
export const messageBytesMax = 65_536;

/** The largest limit that a method can set. A brand with its logo in base64 needs it. */
export const messageBytesMaxOfAny = 6 * messageBytesMax;

/**
 * The maximum total size of the bodies on both ports that have not been handed to their calls yet: 512 bodies of the
 * usual maximum size.
 */
export const bodyBytesOfAllMax = 512 * messageBytesMax;

/** Bodies larger than this are handed to calls a few at a time. No ordinary order is this large. */
export const largeBodyBytes = 8_192;

/**
 * The bytes of large bodies that are handed to calls in one turn of the event loop: 3 ms of work, during which new
 * connections wait.
 */
export const largeBodyBytesPerTurn = 524_288;

/**
 * The largest response that Connect sends, in bytes, because gRPC clients accept no more by default. A page of 100
 * orders with the longest texts, metadata and refused payments has two thirds of this without its refunds and disputes.
 */
export const responseBytesMax = 4_194_304;

/**
 * The maximum size of all refunds and disputes on a page, as JSON, in bytes. A page ends before it exceeds this, but
 * contains at least one order: its 100 refunds with the longest texts have 700 KB.
 */
export const pageReversalBytesMax = responseBytesMax / 4;

/** The time for one call from its headers to its response. A client may set a shorter limit, but not a longer one. */
export const callTimeoutMs = 5_000;

/**
 * If a client sets a timeout shorter than this, a `deadline_exceeded` is not counted as an error of the gateway. A
 * `CreateOrder` call that takes longer than this counts as slow in the alert GatewaySlow.
 */
export const fairTimeoutMs = 500;

/**
 * The maximum size of a request's headers, in HTTP/1.1 and HTTP/2. An API call has a few hundred bytes of headers, and
 * proxies add some.
 */
export const headerBytesMax = 16_384;

/** The maximum length of a value in a path: the longest order_id, with four bytes per code point, percent-encoded. */
export const pathParameterMax = fieldRules.order_id.lengthMax * '%F0%9F%98%80'.length;

/**
 * A connection is closed if it has not sent all headers of a request this long after the request began. Detecting this
 * takes up to two checks ({@link connectionsCheckEveryMs}) longer.
 */
export const headersTimeoutMs = 5_000;

/** If a request is not complete after this long, its connection is closed, even if the client keeps sending. */
export const requestTimeoutMs = 10_000;

/** How often the connections of both servers are checked against their time limits. */
export const connectionsCheckEveryMs = 1_000;

/**
 * If the client of an HTTP/1.1 connection reads nothing of a response for this long, the connection is closed. This is
 * longer than the time limits above, because a request that exceeds one of those still gets a response.
 */
export const responseTakenTimeoutMs = 15_000;

/**
 * The pipelined requests of one HTTP/1.1 connection that may wait for their responses. A connection with more is
 * closed. Without this limit, Node.js would buffer a few thousand requests, 20 MB, for a client that reads no
 * responses. Common clients pipeline only a few.
 */
export const pipelinedRequestsMax = 250;

/**
 * How long an idle HTTP/1.1 connection stays open for the next request. This is longer than the 60 s of common load
 * balancers.
 */
export const keepAliveTimeoutMs = 65_000;

/** How long a connection may wait for its first request. Pools and load balancers open connections ahead of use. */
export const unusedTimeoutMs = 65_000;

/** The number of files that the process may have open; infinite where the system has no such limit. */
export const openFilesMax = readOpenFilesMax();

/**
 * The maximum number of connections of each port, far more than a process can serve. Where the limit of open files is
 * low, the two ports together use four fifths of it. The rest is for the database, webhooks and logs.
 */
export const connectionsMax = Math.min(10_000, Math.floor(openFilesMax * 0.4));

/**
 * The connections of a port that may wait to be accepted; the system caps this at net.core.somaxconn. With Node.js's
 * default of 511, a client may have to retry its connection after a second while other clients open 2,000 per second.
 */
export const backlogMax = 4_096;

/** Connections of the admin port: only scrapers and operators connect. */
export const adminConnectionsMax = 100;

/** The limits of checking credentials in one process (docs/decisions/004-credential-cache.md). */
export const credentialLimits = {
  /**
   * How long a cached account is valid. A revoked secret must stop working within 1 s in every process. This limit
   * achieves that without messages between processes. The rest of the second is for the lookup itself.
   */
  cacheLifeMs: 800,
  /** An account in use is refreshed in the background at this age, so that no request of a busy merchant waits. */
  refreshAgeMs: 400,
  /**
   * The maximum number of cached accounts, about 1 KB each. The account that was looked up least recently is dropped
   * first. Unknown ids are never cached.
   */
  cachedAccountsMax: 10_000,
  /**
   * The number of pending lookups at which further calls with ids that are not cached are `overloaded` immediately. A
   * flood of unknown ids reaches this number in half a second, and a merchant's first call may wait behind these
   * lookups. Lookups are batched, so this many take only a handful of statements.
   */
  uncachedLookupsMax: 4_096,
  /**
   * Credentials that do not match are rejected this long after their lookup began, which is far longer than a lookup
   * takes. Otherwise, many calls could reveal which accounts exist, because a lookup that finds one takes longer.
   */
  rejectedAfterMs: 25,
  /** The number of cached hashes of secrets that were valid. */
  hashedSecretsMax: 10_000,
};

/**
 * Log lines per second for each code and account, where all unauthenticated callers count as one account. Logging every
 * call of a flood would cost more than responding to it.
 */
export const callLinesPerSecond = 10;

/** The number of logos kept in memory, at most 8 MB in total. Each customer's first page loads the merchant's logo. */
export const cachedLogosMax = 32;

/**
 * When calls are rejected as overloaded, or wait, before their work begins (docs/decisions/037-overload.md). They apply
 * before `queueLimits` of the database, which bound the calls that wait for one kind of statement.
 */
export const admissionLimits = {
  /** Calls in flight of all accounts: a fifth of a second of work. */
  callsMax: 2_048,
  /** The same limit while orders take too long to store: one full batch. */
  callsMaxWhenSlow: 1_024,
  /** How long storing an order may take before the lower limit applies: longer than an occasional stall of a disk. */
  orderAgeMaxMs: 500,
  /** Active calls. If all of them run in one turn of the event loop, that turn takes 25 ms. */
  activeMax: 256,
  /** The active calls that an account may always have without waiting: too few to delay other accounts. */
  activeMin: 16,
};

/**
 * How long a stopping gateway accepts requests by default while its health checks already fail. By default, HAProxy
 * checks every 2 s and Kubernetes every 10 s, and each acts on the third failure in a row. A load balancer that takes
 * longer than this to notice needs a longer delay.
 */
export const drainDelayMs = 5_000;

/**
 * How long calls in flight may take once a stopping gateway has stopped listening; then their connections are closed.
 */
export const drainTimeoutMs = 3_000;

/**
 * A health check reuses a result of the database check that is at most this old, because anyone may request a health
 * check, and each database check is a commit.
 */
export const readinessCheckEveryMs = 1_000;

/** If a check takes longer, the gateway is not ready. An orchestrator's probe waits about as long. */
export const readinessCheckTimeoutMs = 2_000;

/**
 * The clock of a process is wrong if it differs from the database's by more than this. Clocks that are synchronized
 * differ by milliseconds, and a leap second that only one of them applies makes one second.
 */
export const clockToleranceMs = 2_000;

/**
 * How often the files of the TLS certificate are read again. Certificates are renewed weeks before they expire, so a
 * shorter interval would gain nothing. A longer one would delay the error for an invalid file.
 */
export const tlsCheckEveryMs = 10_000;

/** A TLS connection that is not established after this long is closed. */
export const tlsHandshakeTimeoutMs = 5_000;

/** The limits of the gRPC port. Values that are Node.js's defaults are marked as such. */
export const http2Limits = {
  /** Calls in flight on one connection. RFC 9113, 6.5.2 advises at least 100. */
  maxConcurrentStreams: 250,
  /** An unauthenticated connection still counts for this long after it closes, so reconnecting gains nothing. */
  unauthenticatedCountsMs: 1_000,
  /**
   * Calls in flight on all authenticated connections together, and separately on all unauthenticated ones. With nine
   * connections or more, each gets less than `maxConcurrentStreams`.
   */
  streamsOfAllSessions: 2_048,
  /**
   * An authenticated connection may always have this many calls in flight: 3,200 calls per second at 5 ms each. An
   * unauthenticated connection may have at most this many, once its client has acknowledged the limit.
   */
  concurrentStreamsMin: 16,
  /** Even a message of almost the usual maximum size arrives without waiting for a window update. */
  initialWindowSize: messageBytesMax,
  /** The limits of a call's metadata. An ordinary call has eight entries. Tracing by clients and proxies adds some. */
  metadataBytesMax: headerBytesMax,
  metadataEntriesMax: 100,
  /** A call with larger metadata is reset instead of getting an error with details. Clients send at most 64 KiB. */
  maxHeaderListSize: 4 * headerBytesMax,
  maxHeaderListPairs: 400,
  /** Megabytes that one connection may use (Node.js's default). */
  maxSessionMemory: 10,
  /** The entries of one SETTINGS frame (Node.js's default). RFC 9113 defines six. */
  maxSettings: 32,
  /**
   * Frames that violate the protocol. A correct client sends none. The limit is a tenth of Node.js's default, because
   * each such frame costs a stream.
   */
  maxSessionInvalidFrames: 100,
  /**
   * Rapid reset, CVE-2023-44487: streams that a client may reset, as a burst and per second. Ordinary clients cancel
   * calls too, at most all of those in flight, and closing the connection would fail its remaining calls. The burst is
   * therefore twice the number of calls in flight, half of Node.js's default. The rate is Node.js's default.
   */
  streamResetBurst: 500,
  streamResetRate: 33,
  /**
   * If the request or response of a call is not complete after this long, the call is reset. Streams such as a watch of
   * health or events may take longer.
   */
  streamTimeoutMs: requestTimeoutMs,
  /**
   * Streaming calls of health checks and reflection in flight, on one connection and on all. A client watches a few
   * services at most, and a call takes about 30 KB. Above the second limit, the oldest call on an unauthenticated
   * connection ends, so that unauthenticated clients can't exhaust the limit.
   */
  streamingCallsPerConnection: 8,
  streamingCallsMax: 1_000,
  /** The request bytes of one reflection call. A tool that reads all of the gateway's services sends less than 2 KB. */
  streamingRequestBytesMax: 16_384,
  /** A connection without calls is closed after this long; gRPC clients reconnect automatically. */
  idleTimeoutMs: 300_000,
  unusedTimeoutMs,
  connectionsMax,
  /** How long a client has to react to GOAWAY before its socket is closed. */
  goawayTimeoutMs: 1_000,
  checkEveryMs: connectionsCheckEveryMs,
  /** How long a stopping gateway keeps an idle connection open for a call that the client may already have sent. */
  idleDrainMs: 500,
  drainTimeoutMs,
};

/**
 * The limits of unauthenticated gRPC connections that reset their streams or send tiny frames
 * (docs/decisions/047-unauthenticated-callers.md).
 */
export const penaltyLimits = {
  /**
   * The penalties that one network may incur, as a burst and per second. They don't affect ordinary clients, which have
   * valid credentials.
   */
  perSecond: 20,
  /**
   * Connections per second that a network may open after it has exceeded its limit. Each costs 1 to 3 ms of CPU time
   * during an attack.
   */
  connectionsPerSecond: 50,
  /** The connections of such a network that may wait, for 2 s at most. */
  waitingMax: 100,
  /** The restriction ends once the network has not exceeded its limit for this long and no connection waits. */
  restrictedMs: 1_000,
  restrictedNetworksMax: 100,
  /**
   * Frames shorter than `tinyFrameBytes` are tiny. One message may have `tinyFramesMax` of them without a penalty. Its
   * prefix and its last frame are often short. Few clients send other short frames.
   */
  tinyFrameBytes: 64,
  tinyFramesMax: 64,
};

/** The limits of delayed responses. A caller that waits for its response sends fewer requests. */
const pauseLimits = {
  pauseMs: 1_000,
  /**
   * Each response waits a millisecond longer for every response that already waits, so that at most 1,000 are sent per
   * second. No response waits longer than this.
   */
  pauseMaxMs: 8_000,
  /** The responses that may wait: one for each connection of both ports. Further responses are sent immediately. */
  pausedMax: 2 * connectionsMax,
};

/** The limits of calls without valid credentials in one process (docs/decisions/047-unauthenticated-callers.md). */
export const unauthenticatedLimits = {
  /**
   * The pages per second that one public network may request, and separately its failed authentications per second.
   * Customers behind a carrier's NAT open dozens of pages per second.
   */
  perNetwork: 100,
  /** Failed authentications per second of all networks: enough for a few misconfigured clients. */
  rejectedPerSecond: 200,
  /**
   * Pages rendered at the same time. Each takes 0.1 ms of CPU time, so together they delay merchants by about 3 ms.
   */
  inFlightMax: 32,
  /** Pages that may wait for a slot. Above this number, or after the timeout, they are `rate_limited`. */
  waitingMax: 1_000,
  waitingTimeoutMs: 1_000,
  ...pauseLimits,
};

/** `overloaded` and `rate_limited` responses to calls with valid credentials (docs/decisions/037-overload.md). */
export const rejectionLimits = {
  /**
   * The rejections per second that are sent immediately, which takes 5 % of a core's time. Further ones are delayed,
   * because clients that ignore `Retry-After` retry immediately.
   */
  immediatePerSecond: 500,
  ...pauseLimits,
};

/** The limits of webhook deliveries in one process. */
export const webhookLimits = {
  /** The time for one attempt, from the lookup of its host to the end of its response. */
  attemptTimeoutMs: 15_000,
  /** Only the status of a response counts, so larger responses are cut off. */
  responseBytesMax: 8_192,
  /**
   * How long an idle connection waits for the next request. Common servers close idle connections after 5 s or more.
   */
  idleConnectionMs: 4_000,
  /** Attempts in flight: if 60 busy endpoints begin to hang at the same time, there is still capacity for the rest. */
  attemptsMax: 1_024,
  /**
   * Attempts in flight to endpoints that failed at the last attempt or are currently slow, so that they don't delay
   * other endpoints.
   */
  failingAttemptsMax: 256,
  /**
   * Attempts in flight to one healthy endpoint, 160 per second if each takes 100 ms, and to an endpoint whose last
   * attempt failed.
   */
  perEndpoint: 16,
  perFailingEndpoint: 1,
  /** An endpoint counts as slow while one of its attempts in flight has taken longer than this. */
  slowAfterMs: 1_000,
  /** How often to look for due deliveries. Deliveries of events that this process stores are looked for immediately. */
  pollEveryMs: 500,
  /**
   * The minimum pause between two lookups, so that each finds several deliveries under load. The pause is also at least
   * `pollPauseRatio` times the duration of the last lookup, up to `pollEveryMs`, because lookups take longer on Citus,
   * where pauses of 20 ms cost half of the database's CPU time.
   */
  pollPauseMs: 20,
  pollPauseRatio: 3,
  /** The time limit of a test message. The merchant's call waits for the endpoint's response. */
  pingTimeoutMs: 3_000,
  /** Test messages in flight, in total and to the endpoints of one merchant. */
  pingsMax: 32,
  pingsPerMerchant: 2,
};

/** The limits of open payment pages that wait for a change in one process (docs/decisions/062-pages-wait.md). */
export const pageWatchLimits = {
  /**
   * Pages above these numbers get a response immediately and ask again after 5 s. The pages of one order are the tabs
   * of one customer. A merchant may have as many waiting pages as there are free slots, so a single merchant can use at
   * most half. Pages are not counted by address, because customers behind one proxy share an address.
   */
  waitersMax: 1_000,
  waitersPerOrder: 8,
  /** How often the orders of all pages are read, and how many per statement: at most 16 statements per second. */
  pollEveryMs: 1_000,
  pollPauseMs: 0,
  batchMax: 64,
  lookupTimeoutMs: 5_000,
};

/** The limits of checking logos in one process (docs/decisions/066-decode-one-logo-at-a-time.md). */
export const logoCheckLimits = {
  /**
   * The scans of a JPEG. Encoders write up to six for each of four components. Decoding 32 scans of the largest image
   * takes 0.4 s.
   */
  scansMax: 32,
  /** The CPU time allowed for one logo. The largest ordinary logo takes 0.2 s, and its thread uses up to 100 MB. */
  cpuMs: 1_000,
  /** Logos that are being decoded or wait for it. With more, some calls could miss their deadline. */
  waitingMax: 16,
};

/** The limits of calls that wait for events in one process. */
export const eventWatchLimits = {
  /** `Prefer: wait` in seconds: proxies commonly give up after 30 or 60. */
  waitSecondsMax: 20,
  /** Waiting calls of one merchant, and of all. Further calls get their page immediately. */
  waitersPerMerchant: 20,
  waitersMax: 2_000,
  /** Streams of one merchant, their duration, and the interval of their heartbeats. */
  streamsPerMerchant: 10,
  streamMs: 3_600_000,
  heartbeatMs: 10_000,
  /** Events that a stream reads at a time. The gateway keeps no more than this in memory for a slow reader. */
  streamPageMax: 100,
  /** How long a merchant with too many streams is asked to wait before it retries. A stream may have ended by then. */
  streamsRetryAfterMs: 1_000,
  /** How often to look for events stored by other processes, and the pause between two lookups under load. */
  pollEveryMs: 500,
  pollPauseMs: 20,
};

function readOpenFilesMax(): number {
  const { userLimits } = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  return Number(userLimits?.open_files?.soft) || Number.POSITIVE_INFINITY;
}
