import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { findOrder } from '../find-order.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { callTimeoutMs } from '../limits.ts';
import { orderAnswer } from '../order-answer.ts';
import { credentialsOf } from './credentials.ts';
import { refuse } from './refuse.ts';
import { wildcardOf } from './wildcard.ts';

/**
 * `GET /order/{order_id}`: one of the caller's own orders. The order_id is all that follows `/order/`, percent-decoded, so that
 * an id with a slash in it is found also behind a proxy that decodes `%2F`.
 */
export function orderLookupRoutes(app: FastifyInstance, deps: GatewayDeps): void {
  app.get('/order/*', (request, reply) => answer(deps, request, reply));
}

async function answer(deps: GatewayDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  // A refusal too: what is not there yet may be there at the next look-up.
  reply.header('cache-control', 'no-store');
  const merchant = await deps.authenticate(credentialsOf(request.headers), callTimeoutMs);
  if (!merchant.ok) return refuse(deps, request, reply, merchant.failure);
  request.merchantId = merchant.value.id;
  const found = await findOrder(
    deps,
    merchant.value.id,
    { by: 'order_id', orderId: wildcardOf(request) },
    callTimeoutMs - reply.elapsedTime,
  );
  if (!found.ok) return refuse(deps, request, reply, found.failure);
  request.outcome = 'ok';
  return reply
    .headers({ 'content-type': 'application/json', 'x-request-id': request.id })
    .send(JSON.stringify(orderAnswer(found.value, deps.baseUrl())));
}
