import { createServer } from 'node:http';
import { bind, type PortServer } from '../network/listen.ts';
import type { Metrics } from '../telemetry/metrics.ts';

/** Only scrapers and operators connect. */
const connectionsMax = 100;

/** The admin port: `GET /metrics` in Prometheus's text format. It must stay private, because it needs no credentials. */
export function createAdminServer({ scrape }: Metrics): PortServer {
  const server = createServer((request, response) => {
    if (request.url?.split('?', 1)[0] === '/metrics') scrape(request, response);
    else response.writeHead(404).end();
  });
  server.maxConnections = connectionsMax;
  return {
    listen: (port, host) => bind(server, { port, host }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
