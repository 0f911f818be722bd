import { createHttp2Server, type Http2Server } from '@gateway/http2/http2-server';
import type { GatewayDeps } from '../gateway-deps.ts';
import { http2Limits } from '../limits.ts';
import { createConnectCalls } from './connect-calls.ts';
import { isLaneCall, LaneCall } from './lane.ts';

/**
 * The gRPC door: HTTP/2 without TLS. Ordinary gRPC calls are answered by the lane; all else that Connect speaks (compression,
 * JSON, gRPC-Web, Connect) is answered by its handlers.
 */
export function createGrpcListener(deps: GatewayDeps): Http2Server {
  const serveConnectCall = createConnectCalls(deps);
  return createHttp2Server({
    limits: http2Limits,
    hint: 'This is the gRPC port: HTTP/2 without TLS. JSON is taken on the HTTP port.',
    onStream: (stream) => (isLaneCall(stream.fields) ? new LaneCall(deps, stream) : serveConnectCall(stream)),
    onFault: (error) => deps.log.fault('the gRPC listener failed', error),
  });
}
