import type { IncomingMessage } from 'node:http';
import type { Failure } from '@gateway/domain/failure';
import type { Order } from '@gateway/domain/order';
import { failed, type Result, success } from '@gateway/domain/result';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Call } from '../call.ts';
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
import { isJsonInUtf8, parameterOf, sendFailure } from './requests.ts';

/** The interface's `POST /order`, and what a merchant does with orders later. */
export function orderRoutes(app: FastifyInstance, deps: GatewayDeps): void {
  // Media type and client are checked before the body is read; the body is taken as bytes whatever it is.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async ({ call }: FastifyRequest, stream: IncomingMessage) => {
    const body = await deps.readBody(stream, { hasEnvelope: false }).take();
    call.messageCame(body);
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
        return sendFailure(reply, { kind: 'body_too_large' }, deps);
      }
      if (!isJsonInUtf8(headers)) return sendFailure(reply, { kind: 'unsupported_media_type' }, deps);
      const client = await call.authenticate('merchant');
      if (!client.ok) return sendFailure(reply, client.failure, deps);
    },
    async handler({ call, body }, reply) {
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
    },
  });
  /** Adds a route that answers a merchant's request with a value as JSON. */
  const addRoute = (
    method: 'GET' | 'POST',
    url: string,
    operation: string,
    handle: (request: FastifyRequest, reply: FastifyReply) => Promise<Result<object, Failure>>,
  ) =>
    app.route({
      method,
      url,
      config: { operation },
      async onRequest({ call }, reply) {
        // An error, too, must not be cached: the order may exist at the next look-up.
        reply.header('cache-control', 'no-store');
        const client = await call.authenticate('merchant');
        if (!client.ok) return sendFailure(reply, client.failure, deps);
      },
      async handler(request, reply) {
        const { call } = request;
        const result = await call.run(() => handle(request, reply));
        if (!result.ok) return sendFailure(reply, result.failure, deps);
        call.succeed('ok');
        return reply.header('content-type', 'application/json').send(JSON.stringify(result.value));
      },
    });
  const recordOf = (order: Order, { client }: Call) => orderRecord(order, client.merchant.mode, deps.baseUrl());
  // The order_id is all that follows, percent-decoded: an id with a slash is found behind a proxy that decodes `%2F`, too.
  addRoute('GET', '/order/*', 'GetOrder', async (request) => {
    const found = await findOrder(deps, request.call, { by: 'order_id', orderId: parameterOf(request, '*') });
    return found.ok ? success(recordOf(found.value.order, request.call)) : found;
  });
  addRoute('POST', '/order/:order_id/cancel', 'CancelOrder', async (request, reply) => {
    const { call } = request;
    const cancelled = await cancelOrder(deps, call, { by: 'order_id', orderId: parameterOf(request, 'order_id') });
    if (!cancelled.ok) return cancelled;
    const { found, replayed } = cancelled.value;
    if (replayed) {
      call.succeed('replayed');
      reply.header('idempotent-replayed', 'true');
    }
    return success(recordOf(found.order, call));
  });
  addRoute('GET', '/orders', 'ListOrders', async ({ call, query }) => {
    const page = await listOrders(deps, call, Object(query));
    if (!page.ok) return page;
    const { orders, nextCursor } = page.value;
    return success({ orders: orders.map((order) => recordOf(order, call)), next_cursor: nextCursor });
  });
  addRoute('GET', '/events', 'ListEvents', async ({ call, query }) => {
    const page = await listEvents(deps, call, Object(query));
    if (!page.ok) return page;
    const { mode } = call.client.merchant;
    const events = page.value.events.map((event) => eventResponse(event, mode, deps.baseUrl()));
    return success({ events, next_cursor: page.value.nextCursor });
  });
}
