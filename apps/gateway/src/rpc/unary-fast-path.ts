import { type Http2ServerResponse, sensitiveHeaders } from 'node:http2';
import { toBinary } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import type { Failure } from '@order-gateway/domain/failure';
import { envelopePrefixBytes } from '../calls/body/call-body.ts';
import type { Call } from '../calls/call.ts';
import type { Reply } from '../calls/operation.ts';
import { connectErrorOf } from './errors.ts';
import type { RpcMethod } from './methods.ts';

const contentType = { 'content-type': 'application/grpc+proto' };

/**
 * The headers of a call that succeeded, except for its request id. That id differs in each response, so HPACK does not
 * index it. Otherwise, it would evict the headers that repeat, and nghttp2 would compare it with the previous ids.
 */
const okHeaders = { ':status': 200, ...contentType, [sensitiveHeaders]: ['x-request-id'] };

/** The trailers of a call that succeeded. */
const okTrailers = statusOf(undefined);

/**
 * Responds to an ordinary unary call that succeeded. This avoids Connect's pipeline of iterators and signals, which
 * takes six times as much CPU time as the rest of a call. Connect's adapter handles all other calls. Its response to
 * this call would be the same (test/rpc/grpc-fast-path.test.ts), so this function can be deleted at any time.
 */
export function respondToUnary(
  response: Http2ServerResponse,
  { requestId }: Call,
  { operation, buildMessage }: RpcMethod,
  { body, outcome }: Reply,
): void {
  const envelope = envelopeOf(toBinary(operation.method.output, buildMessage(body)));
  // The client may have cancelled the call in the meantime.
  if (response.stream.closed) return;
  const headers = { ...okHeaders, 'x-request-id': requestId };
  // `writeHead` does not support `sensitiveHeaders`.
  response.stream.respond(outcome === 'replayed' ? { ...headers, 'idempotent-replayed': 'true' } : headers, {
    waitForTrailers: true,
  });
  response.addTrailers(okTrailers);
  response.end(envelope);
}

/** Records the failure of a call, and rejects the call. */
export function rejectCall(response: Http2ServerResponse, call: Call, failure: Failure): void {
  if (response.stream.closed) return;
  call.fail(failure);
  if (failure.kind === 'unsupported_media_type') response.writeHead(415).end();
  else sendError(response, connectErrorOf(failure, call.requestId));
}

/**
 * Rejects a call with headers only (PROTOCOL-HTTP2, Trailers-Only), without waiting for its body. Clients retry a call
 * only if the error has this form, because separate response headers commit them to the attempt (gRFC A6).
 */
export function sendError(response: Http2ServerResponse, error: ConnectError): void {
  if (response.stream.closed) return;
  // `writeHead` would send the headers without ending the stream. Clients would interpret that as a response with a
  // message.
  for (const [name, value] of Object.entries({ ...contentType, ...statusOf(error) })) response.setHeader(name, value);
  response.end();
}

function statusOf(error: ConnectError | undefined): Record<string, string> {
  const trailers = setTrailerStatus(new Headers(), error);
  if (error !== undefined) trailers.set('grpc-message', percentEncoded(error.rawMessage));
  return Object.fromEntries(trailers);
}

function envelopeOf(message: Uint8Array): Buffer {
  const envelope = Buffer.allocUnsafe(envelopePrefixBytes + message.length);
  envelope[0] = 0;
  envelope.writeUInt32BE(message.length, 1);
  envelope.set(message, envelopePrefixBytes);
  return envelope;
}

/**
 * Encodes only the characters that the protocol requires (PROTOCOL-HTTP2, Percent-Encoded), and spaces at the beginning
 * and end, which a header value must not have (RFC 9113, 8.2.1). Connect encodes more characters, and some clients do
 * not decode those: grpc-js shows `%3A` for a colon.
 */
function percentEncoded(message: string): string {
  return message.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]|^ | $/gu, encodeURIComponent);
}
