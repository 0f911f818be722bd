import type { FastifyInstance, FastifyRequest } from 'fastify';

/**
 * `GET /health/live`: the process answers. `GET /health/ready`: so does its database; 503 when not. Neither is logged, because
 * orchestrators ask every few seconds.
 */
export function healthRoutes(app: FastifyInstance, deps: { readonly isReady: () => Promise<boolean> }): void {
  app.get('/health/live', async (request, reply) => reply.headers(headersOf(request)).send({ status: 'ok' }));
  let asking: Promise<boolean> | undefined;
  app.get('/health/ready', async (request, reply) => {
    // Anyone may ask, on a connection that orders need too: all who ask meanwhile share the answer.
    asking ??= deps.isReady().finally(() => {
      asking = undefined;
    });
    const ready = await asking;
    return reply
      .code(ready ? 200 : 503)
      .headers(headersOf(request))
      .send({ status: ready ? 'ok' : 'unavailable' });
  });
}

/** What was true a moment ago is no answer: no cache keeps it. */
function headersOf({ id }: FastifyRequest): Record<string, string> {
  return { 'cache-control': 'no-store', 'x-request-id': id };
}
