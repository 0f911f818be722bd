import type { FastifyInstance } from 'fastify';

const options = { config: { isLogged: false } };

/**
 * `GET /health/live`: the process responds. `GET /health/ready`: so does its database; 503 if not. Neither is logged, because
 * orchestrators ask every few seconds, and neither is cached.
 */
export function healthRoutes(app: FastifyInstance, deps: { readonly isReady: () => Promise<boolean> }): void {
  app.get('/health/live', options, async (_request, reply) =>
    reply.header('cache-control', 'no-store').send({ status: 'ok' }),
  );
  let pending: Promise<boolean> | undefined;
  app.get('/health/ready', options, async (_request, reply) => {
    // Anyone may ask, on a connection that orders need too: concurrent requests share one query.
    pending ??= deps.isReady().finally(() => {
      pending = undefined;
    });
    const ready = await pending;
    return reply
      .code(ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ status: ready ? 'ok' : 'unavailable' });
  });
}
