import {
  constants,
  createSecureServer,
  createServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerOptions,
} from 'node:http2';
import { Code, ConnectError, createContextValues } from '@connectrpc/connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { Call } from '../call.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { backlogMax, http2Limits, tlsHandshakeTimeoutMs } from '../limits.ts';
import { bind, type PortServer } from '../listen.ts';
import { remoteAddressOf } from '../remote-address.ts';
import type { TlsPort } from '../tls.ts';
import {
  publicServices,
  type RpcCall,
  type RpcService,
  routerOptions,
  routesOf,
  rpcCallKey,
  takeTimeout,
} from './context.ts';
import { watchSessions } from './sessions.ts';
import { createUnaryFastPath } from './unary-fast-path.ts';

export interface GrpcServerOptions {
  /** Tests compare both ways. */
  readonly hasFastPath?: boolean;
  readonly limits?: typeof http2Limits;
  /** Absent: HTTP/2 without TLS. */
  readonly tls?: TlsPort | undefined;
}

const isGrpc = (mediaType: string | undefined) => /^application\/grpc(\+|;|$)/i.test(mediaType ?? '');

/** Read by protobuf's rules, an order in JSON would be judged differently than on the HTTP port. */
const isGrpcJson = (mediaType: string | undefined) => /^application\/grpc\+json/i.test(mediaType ?? '');

/** The gRPC port: gRPC over HTTP/2, by Connect's adapter, with a fast path for ordinary unary calls. */
export function createGrpcServer(
  deps: GatewayDeps,
  services: readonly RpcService[],
  { hasFastPath = true, limits = http2Limits, tls }: GrpcServerOptions = {},
): PortServer {
  const methods = new Map(
    services
      .flatMap(({ descriptor }) => descriptor.methods)
      .map((method) => [`/${method.parent.typeName}/${method.name}`, method]),
  );
  const stopping = new AbortController();
  const rpcCalls = new WeakMap<object, RpcCall>();
  const answerByConnect = connectNodeAdapter({
    ...routerOptions,
    connect: false,
    grpcWeb: false,
    routes: routesOf(services),
    // Ends what a client watches.
    shutdownSignal: stopping.signal,
    contextValues: (request) => createContextValues().set(rpcCallKey, rpcCalls.get(request)),
  });
  const fastPath = hasFastPath ? createUnaryFastPath(services) : undefined;

  const serve = async (request: Http2ServerRequest, response: Http2ServerResponse) => {
    const { headers } = request;
    const peer = sessions.peerOf(request.stream, remoteAddressOf(request, deps.trustProxy));
    const call = new Call(deps, 'grpc', headers, peer);
    response.setHeader('x-request-id', call.requestId);
    // With a query it is unknown: Connect ignores one, which would bypass the limits of its method.
    const method = methods.get(request.url);
    call.operation = method?.name ?? call.operation;
    if (method === undefined || !publicServices.has(method.parent))
      response.once('close', () => call.end({ isAnswered: response.writableEnded, status: response.statusCode }));
    if (isGrpcJson(headers['content-type'])) return void response.writeHead(415).end();
    if (method === undefined) {
      call.fail({ kind: 'not_found' });
      return rejectUnknownMethod(headers['content-type'], response);
    }
    // Connect omits it (RFC 9110, 15.5.6).
    if (request.method !== 'POST') response.setHeader('allow', 'POST');
    call.limitTimeout(takeTimeout(headers));
    const { methodKind } = method;
    if (methodKind !== 'unary' && !sessions.admitStreaming(response.stream))
      return response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    // Begun before the client is known: what comes of a body that nobody reads is stored frame by frame.
    const reading =
      isGrpc(headers['content-type']) && methodKind !== 'bidi_streaming'
        ? deps.readBody(request, { hasEnvelope: true, timeoutMs: call.timeLeftMs() })
        : undefined;
    if (await fastPath?.reject(method, request, response, call)) return;
    const body = (await reading?.take()) ?? Buffer.alloc(0);
    // Node.js emits a request before it reads the frames after it. Its reset may be among them: then nobody waits for an answer.
    await new Promise((resolve) => setImmediate(resolve));
    if (body === 'aborted' || response.stream.closed) return;
    const rpcCall = { call, body, isJson: false };
    if (await fastPath?.answer(method, request, response, rpcCall)) return;
    if (methodKind === 'server_streaming' && request.complete) sessions.letStay(response.stream);
    rpcCalls.set(request, rpcCall);
    // Connect makes a URL of the authority, and throws where it can't.
    headers[':authority'] = 'gateway';
    // One chunk, and no announced length: Connect's reader allocates it, and is quadratic in the number of chunks.
    delete headers['content-length'];
    const chunks = request[Symbol.asyncIterator].bind(request);
    request[Symbol.asyncIterator] = async function* (): AsyncGenerator<Buffer, undefined> {
      if (methodKind === 'bidi_streaming') yield* limited(chunks(), limits.streamingRequestBytesMax);
      else if (typeof body !== 'string') yield body;
    };
    answerByConnect(request, response);
  };

  const onRequest = (request: Http2ServerRequest, response: Http2ServerResponse) => {
    // Node.js does this itself, but only once the client has acknowledged the setting, which it may never do.
    if (headerListSize(request) > limits.maxHeaderListSize)
      return response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    serve(request, response).catch((error: unknown) => {
      deps.logger.error({ err: error }, 'gRPC request failed');
      response.stream.destroy();
    });
  };

  const options: ServerOptions = {
    maxHeaderListPairs: limits.maxHeaderListPairs,
    maxSessionMemory: limits.maxSessionMemory,
    maxSettings: limits.maxSettings,
    maxSessionInvalidFrames: limits.maxSessionInvalidFrames,
    streamResetBurst: limits.streamResetBurst,
    streamResetRate: limits.streamResetRate,
    settings: {
      // `shareStreams` changes it.
      maxConcurrentStreams: limits.maxConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderListSize,
      initialWindowSize: limits.initialWindowSize,
      enablePush: false,
    },
  };
  /** For clients that agree on HTTP/2 (ALPN) and have a certificate, if one is required. */
  const createTlsServer = ({ context, renew }: TlsPort) => {
    const handshake = { handshakeTimeout: tlsHandshakeTimeoutMs, requestCert: context.ca !== undefined };
    const server = createSecureServer({ ...options, ...context, ...handshake }, onRequest);
    renew(server);
    return server;
  };
  const server = tls === undefined ? createServer(options, onRequest) : createTlsServer(tls);
  // Node.js would answer 417 by itself, without an x-request-id.
  server.on('checkExpectation', onRequest);
  const sessions = watchSessions(server, limits);
  return {
    async listen(port, host) {
      const bound = await bind(server, { port, host, backlog: backlogMax });
      // A socket that can't be accepted, for lack of file descriptors for example, must not end the process.
      server.on('error', (error) => deps.logger.error({ err: error }, 'gRPC server failed'));
      return bound;
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      stopping.abort();
      sessions.drain();
      await closed;
    },
  };
}

/** The names and values of all header fields, and 32 bytes for each (RFC 9113, 6.5.2). */
const headerListSize = ({ rawHeaders }: Http2ServerRequest) =>
  rawHeaders.reduce((size, text) => size + text.length + 16, 0);

/** gRPC clients make UNIMPLEMENTED of a bare 404 too, with words about HTTP that help nobody. */
function rejectUnknownMethod(mediaType: string | undefined, response: Http2ServerResponse): void {
  const status = setTrailerStatus(new Headers(), new ConnectError('no such method', Code.Unimplemented));
  if (mediaType !== undefined && isGrpc(mediaType))
    response.writeHead(200, { 'content-type': mediaType, ...Object.fromEntries(status) });
  else response.writeHead(404);
  response.end();
}

/** Passes on the chunks of a request that is read while it is answered, up to a limit for all of them. */
async function* limited(chunks: AsyncIterable<Buffer>, bytesMax: number): AsyncGenerator<Buffer, undefined> {
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.length;
    if (length > bytesMax) throw new ConnectError('the messages of this call are too large', Code.ResourceExhausted);
    yield chunk;
  }
}
