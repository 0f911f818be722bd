import { fieldRules } from '@gateway/domain/field-rules';
import type { Http2Limits } from '@gateway/http2/limits';

// Every bound of the two listeners in one place, each with its reason.

/** The largest body or message, in bytes: an order with every field at its limit takes about 20 KiB as UTF-8. */
export const messageBytesMax = 65_536;

/** The time for one call from its headers to its answer. A caller may ask for less, and gets no more. */
export const callTimeoutMs = 5_000;

/** HTTP/1.1 and HTTP/2: the headers of a request. Ours take a few hundred bytes; proxies add some. */
export const headerBytesMax = 16_384;

/** A value in a path: the longest order_id, of code points of four bytes each, percent-encoded. */
export const pathParameterMax = fieldRules.order_id.lengthMax * '%F0%9F%98%80'.length;

/** A connection that has not sent a request's headers after this long is ended; over HTTP/1.1 up to two checks later. */
export const headersTimeoutMs = 5_000;

/** A request that is not complete after this long is ended, however steadily it trickles. */
export const requestTimeoutMs = 10_000;

/** How often the connections of both listeners are held against their time limits. */
export const connectionsCheckEveryMs = 1_000;

/**
 * An HTTP/1.1 connection whose caller takes nothing of an answer for this long, twice at the most, is cut off; one of plain
 * orders, whose answers are short, when it has not taken all of them. Longer than the time limits above, as those are answered.
 */
export const answerTakenTimeoutMs = 15_000;

/**
 * Requests of one HTTP/1.1 connection whose answers have not gone out; with more it is cut off. Node.js would take some thousand
 * from a caller that reads no answer, 20 MB of them, and no client in use sends ahead more than a few.
 */
export const pipelinedRequestsMax = 250;

/** An idle HTTP/1.1 connection is kept this long for the next request, longer than common load balancers' 60 s. */
export const keepAliveTimeoutMs = 65_000;

/** Sockets on each listener: far above what a process can serve, below its file descriptors. */
export const connectionsMax = 10_000;

/** How long calls under way may take when the process is asked to end; what is left then is cut off. */
export const drainTimeoutMs = 3_000;

/** The gRPC listener. */
export const http2Limits: Http2Limits = {
  connectionsMax,
  // RFC 9113 advises at least 100.
  streamsMax: 250,
  // A message at its limit comes without a wait.
  streamWindow: messageBytesMax,
  // Orders of the usual size for all streams at once, and far below what 250 messages at the limit would take.
  connectionWindow: 1_048_576,
  headerBytesMax,
  // A call of ours has eight; clients' and proxies' tracing adds some.
  headerPairsMax: 100,
  // What is larger than is allowed is still told so, and not cut off, up to here.
  headerBlockBytesMax: 65_536,
  // Rapid reset, CVE-2023-44487. Clients give up calls too: all that are under way when their own caller has gone, the slower one
  // of two that they sent, and at any rate while we are slow, but then hardly sooner. The end of a connection costs its other calls.
  resetBurst: 1_000,
  resetRate: 33,
  resetsPerAnswer: 1,
  quickResetMs: 500,
  // Some clients send a ping and two window updates for every answer.
  idleFrameBurst: 1_000,
  idleFrameRate: 100,
  idleFramesPerStream: 16,
  headersTimeoutMs,
  // gRPC clients connect again by themselves.
  idleTimeoutMs: 300_000,
  requestTimeoutMs,
  blockedTimeoutMs: answerTakenTimeoutMs,
  lingerMs: 1_000,
  closingTimeoutMs: callTimeoutMs,
  drainTimeoutMs,
  checkEveryMs: connectionsCheckEveryMs,
};
