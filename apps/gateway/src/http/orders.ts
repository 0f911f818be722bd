import type { IncomingMessage } from 'node:http';
import type { Failure } from '@gateway/domain/failure';
import { failed, type Result, success } from '@gateway/domain/result';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { BodyError } from '../call-body.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { messageBytesMax } from '../limits.ts';
import { parseOrderJson } from '../order-json.ts';
import { cancelOrder } from '../orders/cancel-order.ts';
import { type CreatedOrder, createOrder } from '../orders/create-order.ts';
import { findOrder } from '../orders/find-order.ts';
import { eventResponse, listEvents } from '../orders/list-events.ts';
import { listOrders } from '../orders/list-orders.ts';
import { orderRecord, orderResponse } from '../orders/order-response.ts';
import { isJsonInUtf8, sendFailure, wildcardOf } from './requests.ts';

/** The interface's `POST /order`, and what a merchant does with orders later. */
export function orderRoutes(app: FastifyInstance, deps: GatewayDeps): void {
  // Media type and client are checked before the body is read; the body is taken as bytes whatever it is.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async (_request: FastifyRequest, stream: IncomingMessage) => {
    const body = await deps.readBody(stream, { hasEnvelope: false }).take();
    if (typeof body === 'string') throw new BodyError(body);
    return body;
  });
  app.route({
    method: 'POST',
    url: '/order',
    config: { operation: 'CreateOrder' },
    async onRequest(request, reply) {
      const { call, headers } = request;
      if (Number(headers['content-length']) > messageBytesMax) {
        return sendFailure(reply, call.fail({ kind: 'body_too_large' }), deps);
      }
      if (!isJsonInUtf8(headers)) return sendFailure(reply, call.fail({ kind: 'unsupported_media_type' }), deps);
      const client = await call.authenticate('merchant');
      if (!client.ok) return sendFailure(reply, client.failure, deps);
    },
    handler: (request, reply) => respondToCreate(deps, request, reply),
  });
  // The order_id is all that follows, percent-decoded: an id with a slash is found behind a proxy that decodes `%2F`, too.
  app.get('/order/*', { config: { operation: 'GetOrder' } }, async (request, reply) => {
    const { call } = request;
    return respond(deps, request, reply, async () => {
      const order = await findOrder(deps, call, { by: 'order_id', orderId: wildcardOf(request) });
      return order.ok ? success(orderRecord(order.value, call.client.merchant.mode, deps.baseUrl())) : order;
    });
  });
  const cancelOptions = { config: { operation: 'CancelOrder' } };
  app.post<{ Params: { order_id: string } }>('/order/:order_id/cancel', cancelOptions, async (request, reply) => {
    const { call } = request;
    return respond(deps, request, reply, async () => {
      const cancelled = await cancelOrder(deps, call, { by: 'order_id', orderId: request.params.order_id });
      if (!cancelled.ok) return cancelled;
      const { found, replayed } = cancelled.value;
      if (replayed) {
        call.succeed('replayed');
        reply.header('idempotent-replayed', 'true');
      }
      return success(orderRecord(found.order, call.client.merchant.mode, deps.baseUrl()));
    });
  });
  app.get('/orders', { config: { operation: 'ListOrders' } }, async (request, reply) => {
    const { call } = request;
    return respond(deps, request, reply, async () => {
      const page = await listOrders(deps, call, Object(request.query));
      if (!page.ok) return page;
      const { orders, nextCursor } = page.value;
      const { mode } = call.client.merchant;
      const records = orders.map((order) => orderRecord(order, mode, deps.baseUrl()));
      return success({ orders: records, next_cursor: nextCursor });
    });
  });
  app.get('/events', { config: { operation: 'ListEvents' } }, async (request, reply) => {
    const { call } = request;
    return respond(deps, request, reply, async () => {
      const page = await listEvents(deps, call, Object(request.query));
      if (!page.ok) return page;
      const { mode } = call.client.merchant;
      const events = page.value.events.map((event) => eventResponse(event, mode, deps.baseUrl()));
      return success({ events, next_cursor: page.value.nextCursor });
    });
  });
}

async function respondToCreate(deps: GatewayDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { call, body } = request;
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

/** Answers a merchant's request with a value as JSON. */
async function respond(
  deps: GatewayDeps,
  { call }: FastifyRequest,
  reply: FastifyReply,
  handle: () => Promise<Result<object, Failure>>,
): Promise<FastifyReply> {
  // An error, too, must not be cached: the order may exist at the next look-up.
  reply.header('cache-control', 'no-store');
  const client = await call.authenticate('merchant');
  if (!client.ok) return sendFailure(reply, client.failure, deps);
  const result = await call.run(handle);
  if (!result.ok) return sendFailure(reply, result.failure, deps);
  call.succeed('ok');
  return reply.header('content-type', 'application/json').send(JSON.stringify(result.value));
}
