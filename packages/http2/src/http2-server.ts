import { createServer } from 'node:net';
import { Connection, type ConnectionOptions } from './connection.ts';

export interface Http2Server {
  /** Resolves with the port, which the system chooses for 0. */
  listen(port: number, host: string): Promise<number>;
  /**
   * Takes no new requests and lets those under way finish; what is left after the drain time is cut off. Resolves when every
   * stream has been told of its end.
   */
  close(): Promise<void>;
}

/**
 * An HTTP/2 server without TLS, for clients that know that it is one (RFC 9113, 3.3), with whole answers, without pushes and
 * priorities. It keeps of a request what has to be kept, and bounds what a client can cost.
 */
export function createHttp2Server(options: ConnectionOptions): Http2Server {
  const { limits, onFault } = options;
  const connections = new Set<Connection>();
  let onLastGone = () => {};
  let closed: Promise<void> | undefined;
  const server = createServer((socket) => {
    const connection = new Connection(socket, options);
    connections.add(connection);
    socket.once('close', () => {
      connections.delete(connection);
      if (connections.size === 0) onLastGone();
    });
  });
  server.maxConnections = limits.connectionsMax;
  const sweep = setInterval(() => {
    const now = performance.now();
    for (const connection of connections) connection.check(now);
  }, limits.checkEveryMs).unref();
  server.once('close', () => clearInterval(sweep));
  const close = () =>
    new Promise<void>((resolve) => {
      const endsAt = performance.now() + limits.drainTimeoutMs;
      const cutOff = setTimeout(() => {
        for (const connection of connections) connection.destroy();
      }, limits.drainTimeoutMs).unref();
      server.close(() => {
        clearTimeout(cutOff);
        // The server is done with the last socket before its streams are told of their end.
        onLastGone = resolve;
        if (connections.size === 0) resolve();
      });
      for (const connection of connections) {
        connection.close();
        connection.endBy(endsAt);
      }
    });
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
    close: () => (closed ??= close()),
  };
}
