import {
  constants,
  createSecureServer,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerOptions,
} from 'node:http2';
import { Server as NetServer } from 'node:net';
import { Code, ConnectError, createContextValues } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { callerOf } from '@order-gateway/contract/operations';
import type { Failure } from '@order-gateway/domain/failure';
import { bodyBytesMax } from '../calls/body/call-body.ts';
import { Call } from '../calls/call.ts';
import type { Operation } from '../calls/operation.ts';
import { createReceive } from '../calls/receive.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { backlogMax, http2Limits, tlsHandshakeTimeoutMs } from '../limits.ts';
import { createWatchEvents } from '../operations/events.ts';
import { bind, type PortServer } from '../runtime/network/listen.ts';
import { remoteAddressOf } from '../runtime/network/remote-address.ts';
import type { TlsPort } from '../runtime/network/tls.ts';
import { connectErrorOf } from './errors.ts';
import { readBody, rpcMethods } from './methods.ts';
import { addPublicServices, publicServices } from './public-services.ts';
import {
  addMethods,
  type RpcCall,
  routerOptions,
  rpcCallKey,
  takeTimeout,
  watchEventsImplementation,
} from './router.ts';
import { watchSessions } from './sessions.ts';
import { rejectCall, respondToUnary } from './unary-fast-path.ts';

export interface GrpcServerOptions {
  /** Whether to use the fast path for unary calls. Tests compare the responses with and without it. */
  readonly hasFastPath?: boolean;
  readonly limits?: typeof http2Limits;
  /** Absent: HTTP/2 without TLS. */
  readonly tls?: TlsPort | undefined;
}

/** JSON is not accepted, because Connect would then read the order by Protobuf's rules, unlike the HTTP port. */
const mediaType = /^application\/grpc(\+proto)?$/i;

/**
 * Creates the server of the gRPC port: gRPC over HTTP/2 through Connect's adapter, with a fast path for ordinary unary
 * calls.
 */
export function createGrpcServer(
  deps: GatewayDeps,
  operations: readonly Operation[],
  { hasFastPath = true, limits = http2Limits, tls }: GrpcServerOptions = {},
): PortServer {
  const receive = createReceive(deps);
  const rpcMethodOf = rpcMethods(operations);
  const watchEvents = createWatchEvents(deps);
  const services = [...new Set([...rpcMethodOf.keys()].map(({ parent }) => parent))];
  const methods = new Map(
    [...services, ...publicServices]
      .flatMap((service) => service.methods)
      .map((method) => [`/${method.parent.typeName}/${method.name}`, method]),
  );
  const stopping = new AbortController();
  const rpcCalls = new WeakMap<object, RpcCall>();
  const connectHandler = connectNodeAdapter({
    ...routerOptions,
    connect: false,
    grpcWeb: false,
    routes: (router) => {
      const streaming = new Map([[watchEvents.method, watchEventsImplementation(deps, watchEvents)]]);
      addMethods(router, rpcMethodOf, streaming);
      addPublicServices(router, deps.readiness, services);
    },
    // Ends the health watches and event streams of clients.
    shutdownSignal: stopping.signal,
    contextValues: (request) => createContextValues().set(rpcCallKey, rpcCalls.get(request)),
  });

  const serve = async (request: Http2ServerRequest, response: Http2ServerResponse) => {
    const { headers } = request;
    const peer = sessions.peerOf(request.stream, remoteAddressOf(request, deps.trustProxy));
    const call = new Call(deps, 'grpc', headers, peer);
    response.setHeader('x-request-id', call.requestId);
    const reject = (failure: Failure) => {
      if (response.stream.closed) return;
      call.fail(failure);
      if (failure.kind === 'unsupported_media_type') response.writeHead(415).end();
      else rejectCall(response, connectErrorOf(failure, call.requestId));
    };
    // A path with a query matches no method, so the call is rejected. Connect would ignore the query and perform the
    // call without the limits of the method.
    const method = methods.get(request.url);
    call.operation = method?.name ?? call.operation;
    if (method !== undefined) call.route = request.url;
    if (method === undefined || !publicServices.includes(method.parent)) {
      response.once('close', () => call.end({ isAnswered: response.writableEnded, status: response.statusCode }));
    }
    // Metadata above the higher limits `maxHeaderListPairs` and `maxHeaderListSize` ends the call without details.
    const { rawHeaders } = request;
    if (rawHeaders.length > 2 * limits.metadataEntriesMax || headerListSize(rawHeaders) > limits.metadataBytesMax) {
      return reject({ kind: 'headers_too_large' });
    }
    const isMediaTypeSupported = mediaType.test(headers['content-type'] ?? '') && !hasSeveralMediaTypes(request);
    if (method === undefined) {
      call.fail({ kind: 'not_found' });
      // gRPC clients also derive UNIMPLEMENTED from a bare 404, but with an unhelpful message about HTTP.
      if (isMediaTypeSupported) rejectCall(response, new ConnectError('no such method', Code.Unimplemented));
      else response.writeHead(404).end();
      return;
    }
    if (request.method !== 'POST') {
      call.fail({ kind: 'method_not_allowed', allow: 'POST' });
      return void response.writeHead(405, { allow: 'POST' }).end();
    }
    const { methodKind } = method;
    const isWatch = method === watchEvents.method;
    if (methodKind !== 'unary' && !isWatch && !sessions.admitStreaming(response.stream))
      return response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    const rpcMethod = rpcMethodOf.get(method);
    const bodyForm = { hasEnvelope: true, messageBytesMax: rpcMethod?.messageBytesMax };
    const startReading = (timeoutMs: number) => {
      if (headers.expect !== undefined) response.writeContinue();
      return deps.readBody(request, { ...bodyForm, timeoutMs });
    };
    const received = await receive(call, {
      headers,
      timeoutMs: takeTimeout(headers),
      bodyBytesMax: bodyBytesMax(bodyForm),
      isMediaTypeSupported,
      accountKind: isWatch ? callerOf(method) : rpcMethod?.accountKind,
      startReading: methodKind === 'bidi_streaming' ? undefined : startReading,
      readsImmediately: headers.expect === undefined,
    });
    if (!received.ok) return reject(received.failure);
    // Node.js emits a request before it reads the frames that follow. Those may already contain a reset of the call,
    // which makes a response unnecessary.
    await new Promise((resolve) => setImmediate(resolve));
    if (response.stream.closed) return;
    const body = received.value;
    const members = rpcMethod && (await readBody(rpcMethod, body, { headers, hasEnvelope: true, isJson: false }));
    if (members?.ok === false) return reject(members.failure);
    // `takeTimeout` leaves only a malformed timeout in the headers, which Connect rejects.
    if (hasFastPath && rpcMethod !== undefined && members !== undefined && !('grpc-timeout' in headers))
      return respondToUnary(response, call, rpcMethod, members.value);
    if (isWatch) sessions.keepOpen(response.stream);
    else if (methodKind === 'server_streaming' && request.complete) sessions.exemptFromTimeout(response.stream);
    rpcCalls.set(request, { call, request: members });
    // Connect builds a URL from the authority, and throws if it is invalid.
    headers[':authority'] = 'gateway';
    // Passes the body as one chunk without its announced length. Connect's reader would allocate that length, and its
    // time is quadratic in the number of chunks.
    delete headers['content-length'];
    const chunks = request[Symbol.asyncIterator].bind(request);
    request[Symbol.asyncIterator] = async function* (): AsyncGenerator<Buffer, undefined> {
      if (methodKind === 'bidi_streaming') yield* limited(chunks(), limits.streamingRequestBytesMax);
      else yield body;
    };
    connectHandler(request, response);
  };

  const onRequest = (request: Http2ServerRequest, response: Http2ServerResponse) => {
    // Node.js itself enforces the limit only after the client has acknowledged the setting, which it may never do.
    if (headerListSize(request.rawHeaders) > limits.maxHeaderListSize)
      return response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    serve(request, response).catch((error: unknown) => {
      deps.logger.error({ err: error }, 'gRPC request failed');
      response.stream.destroy();
    });
  };

  const options: ServerOptions & { pauseOnConnect: boolean } = {
    pauseOnConnect: true,
    maxHeaderListPairs: limits.maxHeaderListPairs,
    maxSessionMemory: limits.maxSessionMemory,
    maxSettings: limits.maxSettings,
    maxSessionInvalidFrames: limits.maxSessionInvalidFrames,
    streamResetBurst: limits.streamResetBurst,
    streamResetRate: limits.streamResetRate,
    settings: {
      // The initial value, which `shareStreams` changes.
      maxConcurrentStreams: limits.maxConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderListSize,
      initialWindowSize: limits.initialWindowSize,
      enablePush: false,
    },
  };
  /**
   * Creates a TLS server. Clients must negotiate HTTP/2 (ALPN). If the context contains an authority, they must also
   * present a certificate.
   */
  const createTlsServer = ({ context, renew }: TlsPort) => {
    const handshake = { handshakeTimeout: tlsHandshakeTimeoutMs, requestCert: context.ca !== undefined };
    const server = createSecureServer({ ...options, ...context, ...handshake }, onRequest);
    renew(server);
    return server;
  };
  const server = tls === undefined ? createServer(options, onRequest) : createTlsServer(tls);
  // Node.js would respond with 417 itself, without an x-request-id.
  server.on('checkExpectation', onRequest);
  // By default, Node.js would send `100 Continue` before the call is checked.
  server.on('checkContinue', onRequest);
  const sessions = watchSessions(server, limits, deps.trustProxy);
  return {
    async listen(port, host) {
      const bound = await bind(server, { port, host, backlog: backlogMax });
      // A socket that can't be accepted, for example for lack of file descriptors, must not end the process.
      server.on('error', (error) => deps.logger.error({ err: error }, 'gRPC server failed'));
      return bound;
    },
    async close() {
      // The `close` of an HTTP/2 server would also close all sessions.
      const closed = new Promise((resolve) => NetServer.prototype.close.call(server, resolve));
      stopping.abort();
      sessions.drain();
      await closed;
    },
  };
}

/** The size of all header fields: the length of each name and value, and 32 bytes per field (RFC 9113, 6.5.2). */
const headerListSize = (rawHeaders: readonly string[]) => rawHeaders.reduce((size, text) => size + text.length + 16, 0);

/** Whether there are two different Content-Type headers. Node.js drops the second. */
const hasSeveralMediaTypes = ({ rawHeaders, headers }: Http2ServerRequest) =>
  rawHeaders.some(
    (text, index) => index % 2 === 0 && text === 'content-type' && rawHeaders[index + 1] !== headers['content-type'],
  );

/** Passes on the chunks of a request that is read while the response is sent, up to a limit for their total size. */
async function* limited(chunks: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<Buffer, undefined> {
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > bytesMax) throw new ConnectError('the messages of this call are too large', Code.ResourceExhausted);
    yield chunk;
  }
}
