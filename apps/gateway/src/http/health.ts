import type { FastifyInstance } from 'fastify';
import type { Readiness } from '../runtime/start/readiness.ts';
import { version } from '../runtime/telemetry/version.ts';

/**
 * Adds two routes. `GET /health/live` shows that the process responds. `GET /health/ready` returns 503 if the process
 * should not get new calls, and the share of merchants that are served. Both return the version. Neither is logged as a
 * call, because orchestrators send them every few seconds. Neither response may be cached.
 */
export function healthRoutes(app: FastifyInstance, readiness: Pick<Readiness, 'isReady' | 'servedRatio'>): void {
  const serve = (path: string, check: () => Promise<boolean>, read = async () => ({})) =>
    app.get(path, { config: { isLogged: false } }, async (_request, reply) => {
      const isOk = await check();
      reply.header('cache-control', 'no-store');
      return reply.code(isOk ? 200 : 503).send({ status: isOk ? 'ok' : 'unavailable', version, ...(await read()) });
    });
  serve('/health/live', async () => true);
  serve('/health/ready', readiness.isReady, async () => ({ merchants_served_ratio: await readiness.servedRatio() }));
}
