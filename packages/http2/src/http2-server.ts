import { createServer } from 'node:net';
import { Connection, type ConnectionOptions } from './connection.ts';

export interface Http2Server {
  /** Resolves with the port, which the system chooses for 0. */
  listen(port: number, host: string): Promise<number>;
  /** Takes no new requests and lets those under way finish; what is left after the drain time is cut off. */
  close(): Promise<void>;
}

/**
 * An HTTP/2 server without TLS, for clients that know that it is one (RFC 9113, 3.3), with whole answers, without pushes and
 * priorities. It keeps of a request what has to be kept, and bounds what a client can cost.
 */
export function createHttp2Server(options: ConnectionOptions): Http2Server {
  const { limits, onFault } = options;
  const connections = new Set<Connection>();
  const server = createServer((socket) => {
    const connection = new Connection(socket, options);
    connections.add(connection);
    socket.once('close', () => connections.delete(connection));
  });
  server.maxConnections = limits.connectionsMax;
  const sweep = setInterval(() => {
    const now = performance.now();
    for (const connection of connections) connection.check(now);
  }, limits.checkEveryMs).unref();
  server.once('close', () => clearInterval(sweep));
  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => {
          server.off('error', reject);
          // A socket that can't be accepted, for want of file descriptors say, is no reason to end.
          server.on('error', onFault);
          const address = server.address();
          resolve(typeof address === 'object' && address !== null ? address.port : port);
        });
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        const endsAt = performance.now() + limits.drainTimeoutMs;
        for (const connection of connections) {
          connection.close();
          connection.endBy(endsAt);
        }
        setTimeout(() => {
          for (const connection of connections) connection.destroy();
        }, limits.drainTimeoutMs).unref();
      }),
  };
}
