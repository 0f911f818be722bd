// Every bound of the two listeners in one place, each with its reason.

/** The largest body or message, in bytes: an order with every field at its limit takes about 20 KiB as UTF-8. */
export const messageBytesMax = 65_536;

/** The time for one call from its headers to its answer. A caller may ask for less, and gets no more. */
export const callTimeoutMs = 5_000;

/** HTTP/1.1 and HTTP/2: the headers of a request. Ours take a few hundred bytes; proxies add some. */
export const headerBytesMax = 16_384;

/** A value in a path: an order_id of 128 code points of four bytes each, percent-encoded. */
export const pathParameterMax = 1_536;

/** A connection that has not sent a request's headers after this long is ended. */
export const headersTimeoutMs = 5_000;

/** A request that is not complete after this long is ended, however steadily it trickles. */
export const requestTimeoutMs = 10_000;

/** How often HTTP/1.1 connections are held against the two time limits above. */
export const connectionsCheckEveryMs = 1_000;

/**
 * An HTTP/1.1 connection whose caller takes nothing of an answer for this long, twice at the most, is cut off. Longer than the
 * time limits above, as those are answered.
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

/** Calls under way on one HTTP/2 connection; RFC 9113 advises at least 100. */
export const http2StreamsMax = 250;

/** An HTTP/2 connection without any call for this long is ended; gRPC clients connect again by themselves. */
export const http2IdleTimeoutMs = 300_000;

/** Cancelled streams that one HTTP/2 connection may have at once and a second after (rapid reset, CVE-2023-44487). */
export const http2ResetBurst = 100;
export const http2ResetRate = 20;

/** Header fields of one request; ours has eight, clients' and proxies' tracing adds some. */
export const http2HeaderPairsMax = 100;

/** What one HTTP/2 connection may hold in memory (Node.js counts frames and headers that wait): its default, stated. */
export const http2SessionMegabytesMax = 10;

/** Entries of one SETTINGS frame; RFC 9113 names six. Node.js's default, stated. */
export const http2SettingsMax = 32;

/** Frames against the protocol that one HTTP/2 connection may send before it is ended. */
export const http2InvalidFramesMax = 100;

/** How long calls under way may take when the process is asked to end; what is left then is cut off. */
export const drainTimeoutMs = 3_000;
