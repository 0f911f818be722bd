import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import * as limits from '../limits.ts';
import { type GatewayDeps, orderServiceOptions, orderServiceRoutes } from './order-service.ts';

export interface GrpcListener {
  listen(port: number, host: string): Promise<number>;
  /** Takes no new calls and lets those under way finish; what is left after the drain time is cut off. */
  close(): Promise<void>;
}

/** The gRPC door: HTTP/2 without TLS. It speaks gRPC-Web and Connect too, as Connect's adapter does. */
export function createGrpcListener(deps: GatewayDeps): GrpcListener {
  const server = createServer(
    {
      maxSessionInvalidFrames: 100,
      streamResetBurst: limits.http2ResetBurst,
      streamResetRate: limits.http2ResetRate,
      settings: {
        maxConcurrentStreams: limits.http2StreamsMax,
        maxHeaderListSize: limits.headerBytesMax,
        enablePush: false,
      },
    },
    connectNodeAdapter({ ...orderServiceOptions(deps), routes: orderServiceRoutes(deps) }),
  );
  const sessions = new Set<ServerHttp2Session>();
  server.maxConnections = limits.connectionsMax;
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
    session.on('error', () => session.destroy());
    endSilentSession(session);
  });
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    const tooSlow = setTimeout(() => stream.close(), limits.requestTimeoutMs);
    stream.once('close', () => clearTimeout(tooSlow));
  });
  return { listen: (port, host) => listen(server, port, host), close: () => close(server, sessions) };
}

/** Ends a connection that opens no stream soon, or has had none for long. */
function endSilentSession(session: ServerHttp2Session): void {
  const silent = setTimeout(() => session.destroy(), limits.headersTimeoutMs);
  session.once('stream', () => clearTimeout(silent));
  session.once('close', () => clearTimeout(silent));
  session.setTimeout(limits.http2IdleTimeoutMs, () => session.close());
}

function listen(server: Http2Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

async function close(server: Http2Server, sessions: ReadonlySet<ServerHttp2Session>): Promise<void> {
  const closed = new Promise((resolve) => {
    server.close(resolve);
  });
  for (const session of sessions) session.close();
  const cutOff = setTimeout(() => {
    for (const session of sessions) session.destroy();
  }, limits.drainTimeoutMs);
  await closed;
  clearTimeout(cutOff);
}
