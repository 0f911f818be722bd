import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import type { GatewayDeps } from '../gateway-deps.ts';
import * as limits from '../limits.ts';
import { requestIdOf } from '../request-id.ts';
import { guardConnections } from './connections.ts';
import { dropEndlessTimeout } from './endless-timeout.ts';
import { inGrowingPieces } from './growing-pieces.ts';
import { isLaneCall, serveLaneCall } from './lane.ts';
import { orderServiceOptions, orderServiceRoutes } from './order-service.ts';

export interface GrpcListener {
  listen(port: number, host: string): Promise<number>;
  /** Takes no new calls and lets those under way finish; what is left after the drain time is cut off. */
  close(): Promise<void>;
}

export interface GrpcListenerOptions {
  /** Whether ordinary calls are answered by the lane. Off, Connect answers all: what the lane is held against. */
  readonly lane?: boolean;
}

/**
 * The gRPC door: HTTP/2 without TLS. Ordinary gRPC calls are answered by the lane; all else that Connect's adapter speaks
 * (compression, JSON, gRPC-Web, Connect) is handed to it on a second server that never listens.
 */
export function createGrpcListener(deps: GatewayDeps, { lane = true }: GrpcListenerOptions = {}): GrpcListener {
  const server = createServer({
    maxSessionInvalidFrames: limits.http2InvalidFramesMax,
    maxSessionMemory: limits.http2SessionMegabytesMax,
    maxHeaderListPairs: limits.http2HeaderPairsMax,
    maxSettings: limits.http2SettingsMax,
    streamResetBurst: limits.http2ResetBurst,
    streamResetRate: limits.http2ResetRate,
    settings: {
      maxConcurrentStreams: limits.http2StreamsMax,
      maxHeaderListSize: limits.headerBytesMax,
      initialWindowSize: limits.messageBytesMax,
      enablePush: false,
    },
  });
  const answer = connectNodeAdapter({ ...orderServiceOptions(deps), routes: orderServiceRoutes(deps) });
  const connect = createServer((request, response) => {
    // For Connect's own refusals before there is a call; the answer to a call brings the call's.
    response.setHeader('x-request-id', requestIdOf(request.headers['x-request-id']?.toString(), deps.randomBytes));
    request[Symbol.asyncIterator] = () => inGrowingPieces(request.iterator());
    answer(request, response);
  });
  server.maxConnections = limits.connectionsMax;
  const connections = guardConnections(server);
  server.on('session', (session) => {
    session.on('stream', (stream, headers, flags, rawHeaders) => {
      if (lane && isLaneCall(headers)) void serveLaneCall(deps, stream, headers);
      else handOver(connect, stream, headers, flags, rawHeaders);
    });
  });
  return {
    listen: (port, host) => listen(server, deps, port, host),
    close: () => {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      connections.close();
      return closed;
    },
  };
}

/**
 * Connect's adapter makes a URL of authority and path, which nobody looks at, and throws where it can't; uncaught, that would end
 * the process. A Node.js client on an IPv6 address sends one without brackets, so the authority is not told to Connect. Nor is the
 * length, for which it would make room before a byte has come; Node.js holds the body to it.
 */
function handOver(
  connect: Http2Server,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  ...rest: readonly unknown[]
): void {
  try {
    const told: IncomingHttpHeaders = { ...headers, ':authority': 'gateway' };
    dropEndlessTimeout(told);
    delete told['content-length'];
    connect.emit('stream', stream, told, ...rest);
  } catch {
    stream.close(constants.NGHTTP2_PROTOCOL_ERROR);
  }
}

function listen(server: Http2Server, deps: GatewayDeps, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      // A socket that can't be accepted, for want of file descriptors say, is no reason to end.
      server.on('error', (error) => deps.log.fault('the gRPC listener failed', error));
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}
