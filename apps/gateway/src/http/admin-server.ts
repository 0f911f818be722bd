import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { schemaVersion } from '@order-gateway/postgres/schema-version';
import { adminConnectionsMax } from '../limits.ts';
import { bind, type PortServer } from '../runtime/network/listen.ts';
import type { Metrics } from '../runtime/telemetry/metrics.ts';
import { commit, version } from '../runtime/telemetry/version.ts';

const versions = JSON.stringify({ version, commit, schema: schemaVersion });

/** Routes of the admin port that can be switched off. */
export interface AdminRoutes {
  /** `handle` receives every request whose path begins with this text. */
  readonly path: string;
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
  close(): Promise<unknown>;
}

/**
 * Creates the server of the admin port: `GET /metrics` in Prometheus's text format, and `GET /version` with the
 * version, the commit and the latest migration that this code needs. The port must stay private, because neither of
 * them needs credentials.
 */
export function createAdminServer({ scrape }: Metrics): PortServer & { add(routes: AdminRoutes): void } {
  let routes: AdminRoutes | undefined;
  const server = createServer((request, response) => {
    const path = request.url?.split('?', 1)[0];
    if (path === '/metrics') scrape(request, response);
    else if (path === '/version') response.writeHead(200, { 'content-type': 'application/json' }).end(versions);
    else if (routes !== undefined && path?.startsWith(routes.path)) void routes.handle(request, response);
    else response.writeHead(404).end();
  });
  server.maxConnections = adminConnectionsMax;
  return {
    listen: (port, host) => bind(server, { port, host }),
    add(newRoutes) {
      routes = newRoutes;
    },
    async close() {
      await new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      });
      await routes?.close();
    },
  };
}
