import type { Failure } from '@gateway/domain/failure';
import { failed, type Result } from '@gateway/domain/result';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GatewayDeps } from '../gateway-deps.ts';
import { messageBytesMax } from '../limits.ts';
import { parseOrderJson } from '../order-json.ts';
import { type CreatedOrder, createOrder } from '../orders/create-order.ts';
import { findOrder } from '../orders/find-order.ts';
import { orderResponse } from '../orders/order-response.ts';
import { isJsonInUtf8, sendFailure, wildcardOf } from './requests.ts';

/** `POST /order` and `GET /order/{order_id}`. */
export function orderRoutes(app: FastifyInstance, deps: GatewayDeps): void {
  // The media type is checked before the body is read; the body is taken as bytes whatever it is.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.route({
    method: 'POST',
    url: '/order',
    async onRequest(request, reply) {
      const { call, headers } = request;
      if (Number(headers['content-length']) > messageBytesMax) {
        return sendFailure(reply, call.fail({ kind: 'body_too_large' }), deps);
      }
      if (!isJsonInUtf8(headers)) return sendFailure(reply, call.fail({ kind: 'unsupported_media_type' }), deps);
    },
    handler: (request, reply) => respondToCreate(deps, request, reply),
  });
  // The order_id is all that follows, percent-decoded: an id with a slash is found behind a proxy that decodes `%2F`, too.
  app.get('/order/*', (request, reply) => respondToFind(deps, request, reply));
}

async function respondToCreate(deps: GatewayDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { call, body } = request;
  const client = await call.authenticate();
  if (!client.ok) return sendFailure(reply, client.failure, deps);
  const created = await call.run(async (): Promise<Result<CreatedOrder, Failure>> => {
    const input = parseOrderJson(body instanceof Uint8Array ? body : new Uint8Array());
    if (!input.ok) return failed({ kind: 'malformed_json', reason: input.failure });
    return createOrder(deps, call, input.value);
  });
  if (!created.ok) return sendFailure(reply, created.failure, deps);
  const { order, replayed } = created.value;
  call.succeed(replayed ? 'replayed' : 'created');
  if (replayed) reply.header('idempotent-replayed', 'true');
  return reply
    .code(replayed ? 200 : 201)
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(orderResponse(order, deps.baseUrl())));
}

async function respondToFind(deps: GatewayDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { call } = request;
  // An error, too, must not be cached: the order may exist at the next look-up.
  reply.header('cache-control', 'no-store');
  const client = await call.authenticate();
  if (!client.ok) return sendFailure(reply, client.failure, deps);
  const found = await call.run(() => findOrder(deps, call, { by: 'order_id', orderId: wildcardOf(request) }));
  if (!found.ok) return sendFailure(reply, found.failure, deps);
  call.succeed('ok');
  return reply
    .header('content-type', 'application/json')
    .send(JSON.stringify(orderResponse(found.value, deps.baseUrl())));
}
