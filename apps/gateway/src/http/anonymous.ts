import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GatewayDeps } from '../gateway-deps.ts';
import type { sendFailure } from './requests.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Ends the work of a call that needs no credentials. */
    endTurn?: () => void;
  }
}

/** Bounds the routes of a scope, which need no credentials. What they take from merchants does not depend on how many ask. */
export function admitAnonymously(
  app: FastifyInstance,
  deps: GatewayDeps,
  send: (...args: Parameters<typeof sendFailure>) => unknown,
): void {
  const admit = async (request: FastifyRequest, reply: FastifyReply) => {
    const { call } = request;
    const turn = await call.run(() => deps.anonymousCalls.admit(call.peer));
    if (!turn.ok) return send(reply, turn.failure, deps);
    request.endTurn = turn.value;
    reply.raw.once('close', turn.value);
    return undefined;
  };
  app.addHook('onRequest', async (request, reply) => (request.method === 'POST' ? undefined : admit(request, reply)));
  // Not before the client has sent the form, which it may put off.
  app.addHook('preHandler', async (request, reply) => (request.method === 'POST' ? admit(request, reply) : undefined));
  // Not once the client has taken the response, which it may put off.
  app.addHook('onSend', async ({ call, endTurn }) => {
    endTurn?.();
    call.peer.waits();
  });
}
