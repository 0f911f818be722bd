import type { IncomingHttpHeaders } from 'node:http';
import { headerBytesMax, messageBytesMax } from '../limits.ts';

/** A whole request for one target in a form that all HTTP/1.1 programs read alike. */
export interface PlainRequest {
  /** Those that our answer depends on, each of which came once at the most. */
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const headEnd = Buffer.from('\r\n\r\n');

/** RFC 9110, 5.1 and 5.5, without bytes above ASCII and without lines that are folded. */
const fieldLines = /^(?:[!#$%&'*+.^_`|~\w-]+:[\t\x20-\x7e]*\r\n)+$/;

/** Far more than clients and proxies send. */
const fieldLinesMax = 100;

const readFields = new Set([
  ...['host', 'content-type', 'content-encoding', 'content-length'],
  ...['x-client-id', 'x-client-secret', 'x-request-id'],
]);

/** What changes how a message or its connection is to be read. `connection: keep-alive` by itself does not, over HTTP/1.1. */
const framingFields = new Set(['transfer-encoding', 'expect', 'upgrade', 'proxy-connection']);

/**
 * Reads what has come on a connection since its last answer. `incomplete` is what may become a plain request yet; `undefined` is
 * anything else, which this reader does not judge: a library's does.
 */
export function readPlainRequest(bytes: Buffer, requestLine: string): PlainRequest | 'incomplete' | undefined {
  const line = bytes.toString('latin1', 0, requestLine.length);
  if (!requestLine.startsWith(line)) return undefined;
  const end = bytes.indexOf(headEnd, requestLine.length - 2);
  if (end === -1) return bytes.length < headerBytesMax ? 'incomplete' : undefined;
  if (end >= headerBytesMax) return undefined;
  const headers = readHeaders(bytes.toString('latin1', requestLine.length, end + 2));
  if (headers?.host === undefined || !/^\d{1,5}$/.test(headers['content-length'] ?? '')) return undefined;
  const bodyBytes = Number(headers['content-length']);
  const body = bytes.subarray(end + headEnd.length);
  if (bodyBytes > messageBytesMax || body.length > bodyBytes) return undefined;
  return body.length < bodyBytes ? 'incomplete' : { headers, body };
}

function readHeaders(lines: string): IncomingHttpHeaders | undefined {
  if (!fieldLines.test(lines)) return undefined;
  const headers: IncomingHttpHeaders = {};
  let count = 0;
  for (let at = 0; at < lines.length; count += 1) {
    if (count === fieldLinesMax) return undefined;
    const colon = lines.indexOf(':', at);
    const end = lines.indexOf('\r', colon);
    const name = lines.slice(at, colon).toLowerCase();
    const value = lines.slice(colon + 1, end).trim();
    at = end + 2;
    if (readFields.has(name)) {
      if (headers[name] !== undefined) return undefined;
      headers[name] = value;
    } else if (name === 'connection') {
      if (value.toLowerCase() !== 'keep-alive') return undefined;
    } else if (framingFields.has(name)) return undefined;
  }
  return headers;
}
