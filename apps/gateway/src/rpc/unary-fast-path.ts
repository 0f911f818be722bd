import type { Http2ServerResponse } from 'node:http2';
import { toBinary } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { envelopePrefixBytes } from '../calls/body/call-body.ts';
import type { Call } from '../calls/call.ts';
import type { Members } from '../calls/operation.ts';
import { connectErrorOf } from './errors.ts';
import type { RpcMethod } from './methods.ts';

const contentType = { 'content-type': 'application/grpc+proto' };

/**
 * Performs an ordinary unary call and responds to it. This avoids Connect's pipeline of iterators and signals, which
 * takes six times as much CPU time as the rest of a call. Connect's adapter handles all other calls. Its response to
 * this call would be the same (test/rpc/grpc-fast-path.test.ts), so this function can be deleted at any time.
 */
export async function respondToUnary(
  response: Http2ServerResponse,
  call: Call,
  { operation, buildMessage }: RpcMethod,
  members: Members,
): Promise<void> {
  const performed = await call.perform(operation, members, ({ body, outcome }) => ({
    header: outcome === 'replayed' ? { ...contentType, 'idempotent-replayed': 'true' } : contentType,
    envelope: envelopeOf(toBinary(operation.method.output, buildMessage(body))),
  }));
  if (!performed.ok) return rejectCall(response, connectErrorOf(call.fail(performed.failure), call.requestId));
  // The client may have cancelled the call in the meantime.
  if (response.stream.closed) return;
  response.writeHead(200, performed.value.header);
  response.addTrailers(statusOf(undefined));
  response.end(performed.value.envelope);
}

/**
 * Rejects a call with headers only (PROTOCOL-HTTP2, Trailers-Only), without waiting for its body. Clients retry a call
 * only if the error has this form, because separate response headers commit them to the attempt (gRFC A6).
 */
export function rejectCall(response: Http2ServerResponse, error: ConnectError): void {
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
