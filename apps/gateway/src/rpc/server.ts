import {
  constants,
  createSecureServer,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerOptions,
} from 'node:http2';
import { Server as NetServer } from 'node:net';
import type { DescMethod } from '@bufbuild/protobuf';
import { Code, ConnectError, type ConnectRouter, createContextValues } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { callerOf } from '@order-gateway/contract/operations';
import type { Account } from '@order-gateway/domain/accounts';
import type { Logger } from '@order-gateway/runtime/logger';
import { remoteAddressOf, type TrustProxy } from '@order-gateway/runtime/remote-address';
import { bodyBytesMax } from '../calls/body/call-body.ts';
import type { Call } from '../calls/call.ts';
import type { Operation } from '../calls/operation.ts';
import type { Calls } from '../calls/receive.ts';
import { backlogMax, http2Limits, tlsHandshakeTimeoutMs } from '../limits.ts';
import type { WatchEvents } from '../operations/events.ts';
import { bind, type PortServer } from '../runtime/network/listen.ts';
import type { TlsPort } from '../runtime/network/tls.ts';
import type { Readiness } from '../runtime/start/readiness.ts';
import { type RpcMethod, readMembers, rpcMethods, takeTimeout } from './methods.ts';
import { addPublicServices, publicServices } from './public-services.ts';
import { addMethods, type RpcCall, routerOptions, rpcCallKey, watchEventsImplementation } from './router.ts';
import { watchSessions } from './sessions.ts';
import { rejectCall, respondToUnary, sendError } from './unary-fast-path.ts';

export interface GrpcServerDeps {
  readonly calls: Calls;
  /** The only operation that responds with a stream. */
  readonly watchEvents: WatchEvents;
  readonly readiness: Readiness;
  /** Absent: clients connect without a proxy. */
  readonly trustProxy: TrustProxy | undefined;
  readonly logger: Logger;
}

export interface GrpcServerOptions {
  /** Whether to use the fast path for unary calls. Tests compare the responses with and without it. */
  readonly hasFastPath?: boolean;
  readonly limits?: typeof http2Limits;
  /** Absent: HTTP/2 without TLS. */
  readonly tls?: TlsPort | undefined;
}

/** JSON is not accepted, because Connect would then read the order by Protobuf's rules, unlike the HTTP port. */
const mediaType = /^application\/grpc(\+proto)?$/i;

/** A method that the port serves. */
interface ServedMethod {
  readonly descriptor: DescMethod;
  /** Absent: only Connect performs the method. */
  readonly rpcMethod: RpcMethod | undefined;
  /** Absent: anyone may call the method, without credentials, and its calls are not logged. */
  readonly accountKind: Account['kind'] | undefined;
}

/** The dependencies of the port's requests. */
interface Port extends Pick<GrpcServerDeps, 'calls' | 'trustProxy'> {
  readonly methods: ReadonlyMap<string, ServedMethod>;
  readonly passToConnect: PassToConnect;
  readonly sessions: ReturnType<typeof watchSessions>;
  readonly hasFastPath: boolean;
  readonly limits: typeof http2Limits;
}

/**
 * Creates the server of the gRPC port: gRPC over HTTP/2 through Connect's adapter, with a fast path for ordinary unary
 * calls.
 */
export function createGrpcServer(
  { calls, watchEvents, readiness, trustProxy, logger }: GrpcServerDeps,
  operations: readonly Operation[],
  { hasFastPath = true, limits = http2Limits, tls }: GrpcServerOptions = {},
): PortServer {
  const rpcMethodOf = rpcMethods(operations);
  const services = [...new Set([...rpcMethodOf.keys()].map(({ parent }) => parent))];
  const methods = new Map(
    [...services, ...publicServices].flatMap((service) =>
      service.methods.map((descriptor): [string, ServedMethod] => {
        const accountKind = publicServices.includes(service) ? undefined : callerOf(descriptor);
        const rpcMethod = rpcMethodOf.get(descriptor);
        return [`/${service.typeName}/${descriptor.name}`, { descriptor, rpcMethod, accountKind }];
      }),
    ),
  );
  const stopping = new AbortController();
  const passToConnect = createConnectHandler(stopping.signal, (router) => {
    const streaming = new Map([[watchEvents.method, watchEventsImplementation(calls, watchEvents)]]);
    addMethods(router, rpcMethodOf, streaming);
    addPublicServices(router, readiness, services);
  });
  const onRequest = (request: Http2ServerRequest, response: Http2ServerResponse) => {
    // Node.js itself enforces the limit only after the client has acknowledged the setting, which it may never do.
    if (headerListSize(request.rawHeaders) > limits.maxHeaderListSize)
      return response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    serveRequest(port, request, response).catch((error: unknown) => {
      logger.error({ err: error }, 'gRPC request failed');
      response.stream.destroy();
    });
  };
  const server = createHttp2Server(onRequest, limits, tls);
  const sessions = watchSessions(server, limits, trustProxy);
  const port: Port = { calls, trustProxy, methods, passToConnect, sessions, hasFastPath, limits };
  return {
    async listen(port, host) {
      const bound = await bind(server, { port, host, backlog: backlogMax });
      // A socket that can't be accepted, for example for lack of file descriptors, must not end the process.
      server.on('error', (error) => logger.error({ err: error }, 'gRPC server failed'));
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

/** Starts the call of a request. Serves it, unless its headers, its path or its method are rejected. */
async function serveRequest(port: Port, request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
  const { sessions, limits } = port;
  const { headers, rawHeaders } = request;
  const peer = sessions.peerOf(request.stream, remoteAddressOf(request, port.trustProxy));
  const call = port.calls.start('grpc', headers, peer);
  response.setHeader('x-request-id', call.requestId);
  // A path with a query matches no method, so the call is rejected. Connect would ignore the query and perform the call
  // without the limits of the method.
  const method = port.methods.get(request.url);
  call.operation = method?.descriptor.name ?? call.operation;
  if (method !== undefined) call.route = request.url;
  if (method === undefined || method.accountKind !== undefined) {
    response.on('close', () => call.end({ isAnswered: response.writableEnded, status: response.statusCode }));
  }
  // Metadata above the higher limits `maxHeaderListPairs` and `maxHeaderListSize` ends the call without details.
  if (rawHeaders.length > 2 * limits.metadataEntriesMax || headerListSize(rawHeaders) > limits.metadataBytesMax)
    return rejectCall(response, call, { kind: 'headers_too_large' });
  if (method === undefined) {
    call.fail({ kind: 'not_found' });
    // gRPC clients also derive UNIMPLEMENTED from a bare 404, but with an unhelpful message about HTTP.
    if (hasGrpcMediaType(request)) sendError(response, new ConnectError('no such method', Code.Unimplemented));
    else response.writeHead(404).end();
    return;
  }
  if (request.method !== 'POST') {
    call.fail({ kind: 'method_not_allowed', allow: 'POST' });
    return void response.writeHead(405, { allow: 'POST' }).end();
  }
  const { methodKind } = method.descriptor;
  const isExempt = methodKind === 'unary' || method.accountKind !== undefined;
  if (isExempt || sessions.admitStreaming(response.stream)) return serveMethod(port, method, call, request, response);
  return response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
}

/** Serves a call of a method: on the fast path, or through Connect. */
function serveMethod(
  { calls, passToConnect, sessions, hasFastPath, limits }: Port,
  { descriptor: { methodKind }, rpcMethod, accountKind }: ServedMethod,
  call: Call,
  request: Http2ServerRequest,
  response: Http2ServerResponse,
): Promise<void> {
  const { headers } = request;
  const bodyForm = { hasEnvelope: true, messageBytesMax: rpcMethod?.messageBytesMax };
  const startReading = (timeoutMs: number) => {
    if (headers.expect !== undefined) response.writeContinue();
    return calls.readBody(request, { ...bodyForm, timeoutMs });
  };
  return calls.serve<void>(call, rpcMethod?.operation, {
    incoming: {
      headers,
      timeoutMs: takeTimeout(headers),
      bodyBytesMax: bodyBytesMax(bodyForm),
      isMediaTypeSupported: hasGrpcMediaType(request),
      accountKind,
      startReading: methodKind === 'bidi_streaming' ? undefined : startReading,
      readsImmediately: headers.expect === undefined,
    },
    async decode(body) {
      // Node.js emits a request before it reads the frames that follow. Those may already contain a reset of the call,
      // which makes a response unnecessary.
      await new Promise((resolve) => setImmediate(resolve));
      if (response.stream.closed) return undefined;
      const members = rpcMethod && (await readMembers(rpcMethod, body, { headers, hasEnvelope: true, isJson: false }));
      // `takeTimeout` leaves only a malformed timeout in the headers, which Connect rejects.
      if (members?.ok === false || (hasFastPath && members && !('grpc-timeout' in headers))) return members;
      if (methodKind === 'server_streaming') {
        if (accountKind !== undefined) sessions.keepOpen(response.stream);
        else if (request.complete) sessions.exemptFromTimeout(response.stream);
      }
      const chunks = request[Symbol.asyncIterator].bind(request);
      request[Symbol.asyncIterator] = async function* (): AsyncGenerator<Buffer, undefined> {
        if (methodKind === 'bidi_streaming') yield* limited(chunks(), limits.streamingRequestBytesMax);
        else yield body;
      };
      passToConnect(request, response, { call, request: members });
      return undefined;
    },
    respond: (reply) => rpcMethod && respondToUnary(response, call, rpcMethod, reply),
    reject: (failure) => rejectCall(response, call, failure),
  });
}

type PassToConnect = ReturnType<typeof createConnectHandler>;

/**
 * Creates the function that passes a call to Connect's adapter. The signal ends the health watches and event streams of
 * clients.
 */
function createConnectHandler(shutdownSignal: AbortSignal, routes: (router: ConnectRouter) => void) {
  const rpcCalls = new WeakMap<object, RpcCall>();
  const handle = connectNodeAdapter({
    ...routerOptions,
    connect: false,
    grpcWeb: false,
    routes,
    shutdownSignal,
    contextValues: (request) => createContextValues().set(rpcCallKey, rpcCalls.get(request)),
  });
  return (request: Http2ServerRequest, response: Http2ServerResponse, rpcCall: RpcCall): void => {
    const { headers } = request;
    rpcCalls.set(request, rpcCall);
    // Connect builds a URL from the authority, and throws if it is invalid.
    headers[':authority'] = 'gateway';
    // The body is one chunk without its announced length. Connect's reader would allocate that length, and its time is
    // quadratic in the number of chunks.
    delete headers['content-length'];
    handle(request, response);
  };
}

/** Creates a server of HTTP/2, with or without TLS. */
function createHttp2Server(
  onRequest: (request: Http2ServerRequest, response: Http2ServerResponse) => void,
  limits: typeof http2Limits,
  tls: TlsPort | undefined,
) {
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
  return server;
}

/** The size of all header fields: the length of each name and value, and 32 bytes per field (RFC 9113, 6.5.2). */
const headerListSize = (rawHeaders: readonly string[]) => rawHeaders.reduce((size, text) => size + text.length + 16, 0);

/** Whether a request has the media type of gRPC, and no other. Node.js drops the second of two Content-Type headers. */
function hasGrpcMediaType({ rawHeaders, headers }: Http2ServerRequest): boolean {
  const { 'content-type': type = '' } = headers;
  const isOther = (text: string, index: number) =>
    index % 2 === 0 && text === 'content-type' && rawHeaders[index + 1] !== type;
  return mediaType.test(type) && !rawHeaders.some(isOther);
}

/** Passes on the chunks of a request that is read while the response is sent, up to a limit for their total size. */
async function* limited(chunks: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<Buffer, undefined> {
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > bytesMax) throw new ConnectError('the messages of this call are too large', Code.ResourceExhausted);
    yield chunk;
  }
}
