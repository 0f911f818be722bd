import { createServer } from 'node:http';
import type { Metrics } from './metrics.ts';

export interface AdminServer {
  /** Returns the port that was bound. */
  listen(port: number, host: string): Promise<number>;
  close(): Promise<void>;
}

/** Scrapers and those who look by hand are few. */
const connectionsMax = 100;

/** The admin port: `GET /metrics` in Prometheus's text format. Not for the public: it needs no credentials. */
export function createAdminServer({ scrape }: Metrics): AdminServer {
  const server = createServer((request, response) => {
    if (request.url === '/metrics') scrape(request, response);
    else response.writeHead(404).end();
  });
  server.maxConnections = connectionsMax;
  return {
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => {
          const address = server.address();
          resolve(typeof address === 'object' && address !== null ? address.port : port);
        });
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
