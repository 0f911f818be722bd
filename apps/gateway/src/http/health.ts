import type { FastifyInstance } from 'fastify';

const options = { config: { isLogged: false } };

/**
 * `GET /health/live`: the process responds. `GET /health/ready`: an order can be stored now; 503 if not. Neither is logged as a
 * call, because orchestrators ask every few seconds, and no cache may store either.
 */
export function healthRoutes(app: FastifyInstance, deps: { readonly isReady: () => Promise<boolean> }): void {
  app.get('/health/live', options, async (_request, reply) =>
    reply.header('cache-control', 'no-store').send({ status: 'ok' }),
  );
  app.get('/health/ready', options, async (_request, reply) => {
    const ready = await deps.isReady();
    return reply
      .code(ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ status: ready ? 'ok' : 'unavailable' });
  });
}
