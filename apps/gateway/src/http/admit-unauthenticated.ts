import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { HttpDeps, sendFailure } from './requests.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Releases the slot of a call that needs no credentials. */
    releaseSlot?: () => void;
  }
}

/** Limits the concurrent calls of routes that need no credentials, so that they never take merchants' capacity. */
export function admitUnauthenticated(
  app: FastifyInstance,
  deps: HttpDeps,
  send: (...args: Parameters<typeof sendFailure>) => unknown,
): void {
  const admit = async (request: FastifyRequest, reply: FastifyReply) => {
    const { call } = request;
    const slot = await call.run(() => deps.calls.unauthenticatedCalls.admit(call.peer));
    if (!slot.ok) return send(reply, slot.failure, deps);
    request.releaseSlot = slot.value;
    reply.raw.once('close', slot.value);
    return undefined;
  };
  app.addHook('onRequest', async (request, reply) => (request.method === 'POST' ? undefined : admit(request, reply)));
  // A client may delay its form, so a slot is acquired once the form is complete.
  app.addHook('preHandler', async (request, reply) => (request.method === 'POST' ? admit(request, reply) : undefined));
  // A client may delay reading the response, so the slot is released before it is sent.
  app.addHook('onSend', async ({ call, releaseSlot }) => {
    releaseSlot?.();
    call.peer.markIdle();
  });
}
