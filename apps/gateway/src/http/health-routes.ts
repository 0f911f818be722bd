import type { FastifyInstance } from 'fastify';

/**
 * `GET /health/live`: the process answers. `GET /health/ready`: so does its database; 503 when not. Neither is logged, because
 * orchestrators ask every few seconds.
 */
export function healthRoutes(app: FastifyInstance, deps: { readonly isReady: () => Promise<boolean> }): void {
  app.get('/health/live', async (request, reply) => reply.header('x-request-id', request.id).send({ status: 'ok' }));
  let asking: Promise<boolean> | undefined;
  app.get('/health/ready', async (request, reply) => {
    // Anyone may ask, on a connection that orders need too: all who ask meanwhile share the answer.
    asking ??= deps.isReady().finally(() => {
      asking = undefined;
    });
    const ready = await asking;
    return reply
      .code(ready ? 200 : 503)
      .header('x-request-id', request.id)
      .send({ status: ready ? 'ok' : 'unavailable' });
  });
}
