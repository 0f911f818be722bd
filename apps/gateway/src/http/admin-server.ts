import { createServer } from 'node:http';
import { schemaVersion } from '@order-gateway/postgres/schema-version';
import { adminConnectionsMax } from '../limits.ts';
import { bind, type PortServer } from '../network/listen.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { commit, version } from '../telemetry/version.ts';

const versions = JSON.stringify({ version, commit, schema: schemaVersion });

/**
 * The admin port: `GET /metrics` in Prometheus's text format, and `GET /version` with the version, the commit and the latest
 * migration that this code needs. It must stay private, because it needs no credentials.
 */
export function createAdminServer({ scrape }: Metrics): PortServer {
  const server = createServer((request, response) => {
    const path = request.url?.split('?', 1)[0];
    if (path === '/metrics') scrape(request, response);
    else if (path === '/version') response.writeHead(200, { 'content-type': 'application/json' }).end(versions);
    else response.writeHead(404).end();
  });
  server.maxConnections = adminConnectionsMax;
  return {
    listen: (port, host) => bind(server, { port, host }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
