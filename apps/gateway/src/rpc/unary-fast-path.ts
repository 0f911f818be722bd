import type { IncomingHttpHeaders } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { create, type DescMessage, type DescMethod, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { ConnectError, createContextValues } from '@connectrpc/connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import type { Call } from '../call.ts';
import { announcedLength, envelopePrefixBytes } from '../call-body.ts';
import {
  authenticateRpc,
  clientKindOf,
  publicServices,
  type RpcCall,
  type RpcContext,
  type RpcService,
  rpcCallKey,
} from './context.ts';
import { connectErrorOf } from './errors.ts';

type Implementation = (message: Message, context: RpcContext) => Promise<Record<string, unknown>>;

const mediaType = /^application\/grpc(\+proto)?$/i;

/**
 * A shorter way for what nearly all gRPC calls are: a unary method, one uncompressed message in binary. It calls the same service
 * object as Connect's router, without Connect's pipeline of iterators and signals, which costs six times as much processor time
 * as the rest of a call (docs/decisions). Everything else, each malformed message included, is Connect's to answer, but only to
 * clients with valid credentials: nobody else can make the gateway spend that time. Both answer alike
 * (test/grpc-fast-path.test.ts), so this file can be deleted on any day. `reject` and `answer` respond to a call and resolve to
 * true, or leave it as it is.
 */
export function createUnaryFastPath(services: readonly RpcService[]) {
  const implementations = new Map<DescMethod, Implementation>();
  for (const { descriptor, implementation } of services)
    for (const method of descriptor.methods)
      if (method.methodKind === 'unary') implementations.set(method, Reflect.get(implementation, method.localName));
  const isOrdinary = ({ method, headers }: Http2ServerRequest) =>
    method === 'POST' && mediaType.test(headers['content-type'] ?? '');
  return {
    /** Before the body is there: rejects calls that are not authenticated, or that there is no room for. */
    async reject(
      method: DescMethod,
      request: Http2ServerRequest,
      response: Http2ServerResponse,
      call: Call,
    ): Promise<boolean> {
      if (!implementations.has(method) || !isOrdinary(request) || publicServices.has(method.parent)) return false;
      const client = await call.authenticate(clientKindOf(method.parent));
      if (client.ok) return false;
      if (!response.stream.closed) {
        // Headers only (PROTOCOL-HTTP2, Trailers-Only), without waiting for the body.
        response.setHeader('content-type', 'application/grpc+proto');
        const status = errorTrailers(connectErrorOf(client.failure, call.requestId));
        for (const [name, value] of status) response.setHeader(name, value);
        response.end();
      }
      return true;
    },
    async answer(
      method: DescMethod,
      request: Http2ServerRequest,
      response: Http2ServerResponse,
      rpcCall: RpcCall,
    ): Promise<boolean> {
      const implementation = implementations.get(method);
      if (implementation === undefined || !isOrdinary(request)) return false;
      const responseHeader = new Headers();
      try {
        await authenticateRpc(rpcCall, method.parent);
        const message = decodeMessage(method.input, request.headers, rpcCall);
        if (message === undefined) return false;
        const values = createContextValues().set(rpcCallKey, rpcCall);
        const output = await implementation(message, { values, responseHeader });
        const trailers = setTrailerStatus(new Headers(), undefined);
        send(response, responseHeader, trailers, encodeEnvelope(method.output, output));
      } catch (error) {
        const { call } = rpcCall;
        const failure =
          error instanceof ConnectError ? error : connectErrorOf(call.failInternally(error), call.requestId);
        send(response, responseHeader, errorTrailers(failure));
      }
      return true;
    },
  };
}

/** The one message of a body; `undefined` for anything less regular, which Connect knows how to reject. */
function decodeMessage(schema: DescMessage, headers: IncomingHttpHeaders, { body }: RpcCall): Message | undefined {
  const encoding = headers['grpc-encoding'] ?? 'identity';
  // A timeout that is still there is malformed: `takeTimeout` takes the others.
  if (encoding !== 'identity' || 'grpc-timeout' in headers || typeof body === 'string') return undefined;
  const isRegular = body[0] === 0 && body.length === envelopePrefixBytes + announcedLength(body);
  if (!isRegular) return undefined;
  try {
    return fromBinary(schema, body.subarray(envelopePrefixBytes));
  } catch {
    return undefined;
  }
}

function errorTrailers(failure: ConnectError): Headers {
  const trailers = setTrailerStatus(new Headers(), failure);
  trailers.set('grpc-message', percentEncoded(failure.rawMessage));
  return trailers;
}

function send(response: Http2ServerResponse, header: Headers, trailers: Headers, envelope?: Buffer): void {
  // The client may have cancelled meanwhile.
  if (response.stream.closed) return;
  response.writeHead(200, { 'content-type': 'application/grpc+proto', ...Object.fromEntries(header) });
  response.addTrailers(Object.fromEntries(trailers));
  if (envelope === undefined) response.end();
  else response.end(envelope);
}

function encodeEnvelope(schema: DescMessage, init: Record<string, unknown>): Buffer {
  const data = toBinary(schema, create(schema, init));
  const envelope = Buffer.allocUnsafe(envelopePrefixBytes + data.length);
  envelope[0] = 0;
  envelope.writeUInt32BE(data.length, 1);
  envelope.set(data, envelopePrefixBytes);
  return envelope;
}

/**
 * Encodes only what the protocol demands (PROTOCOL-HTTP2, Percent-Encoded). Connect encodes more, which some clients do not
 * decode: grpc-js shows `%3A` for a colon. A header value neither begins nor ends with a blank (RFC 9113, 8.2.1).
 */
function percentEncoded(message: string): string {
  return message.toWellFormed().replace(/[^\x20-\x24\x26-\x7e]|^ | $/gu, encodeURIComponent);
}
