import type { FastifyInstance } from 'fastify';
import type { Readiness } from '../readiness.ts';

const options = { config: { isLogged: false } };

/**
 * `GET /health/live`: the process responds. `GET /health/ready`: it takes new calls; 503 if not. Neither is logged as a call,
 * because orchestrators ask every few seconds, and no cache may store either.
 */
export function healthRoutes(app: FastifyInstance, readiness: Pick<Readiness, 'isReady'>): void {
  app.get('/health/live', options, async (_request, reply) =>
    reply.header('cache-control', 'no-store').send({ status: 'ok' }),
  );
  app.get('/health/ready', options, async (_request, reply) => {
    const ready = await readiness.isReady();
    return reply
      .code(ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ status: ready ? 'ok' : 'unavailable' });
  });
}
