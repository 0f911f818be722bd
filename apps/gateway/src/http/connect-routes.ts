import { Readable } from 'node:stream';
import { createContextValues } from '@connectrpc/connect';
import { codeToHttpStatus, errorToJson } from '@connectrpc/connect/protocol-connect';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import { OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { connectErrorOf } from '../grpc/connect-error.ts';
import { type GatewayDeps, jsonBodyKey, orderServiceOptions, orderServiceRoutes } from '../grpc/order-service.ts';
import { messageBytesMax } from '../limits.ts';
import { failureOf } from './failure-of-error.ts';

const createOrderPath = `/${OrderService.typeName}/${OrderService.method.createOrder.name}`;

declare module 'fastify' {
  interface FastifyRequest {
    /** The bytes of a Connect request in JSON. */
    jsonBody: Uint8Array | undefined;
  }
}

/**
 * The Connect and gRPC-Web protocols through Connect's own plugin, with one change: protobuf's JSON mapping rounds numbers,
 * takes the last of two equal keys and reads numbers from strings, so that an order would be judged otherwise than on
 * `POST /order`. So the bytes of a JSON message are set aside for the method, which reads them as `POST /order` does, and the
 * plugin is given an empty message.
 */
export async function connectRoutes(app: FastifyInstance, deps: GatewayDeps): Promise<void> {
  await app.register(async (scope) => {
    scope.decorateRequest('jsonBody', undefined);
    scope.addHook('onRequest', async (request, reply) => {
      request.door = request.headers['content-type']?.startsWith('application/grpc-web') ? 'grpc-web' : 'connect';
      if (Number(request.headers['content-length']) > messageBytesMax) reply.header('connection', 'close');
      endUnreadConnection(request, reply);
    });
    scope.addHook('preParsing', async (request, _reply, payload) => {
      if (!isPlainJson(request)) return payload;
      request.jsonBody = await readBody(payload);
      return Readable.from([]);
    });
    scope.addHook('preHandler', async (request) => {
      if (request.jsonBody !== undefined) request.body = {};
    });
    scope.setErrorHandler((error, request, reply) => {
      const failure = failureOf(deps, error, request.id);
      request.outcome = failure.kind;
      const connectError = connectErrorOf(failure, request.id);
      return reply
        .code(codeToHttpStatus(connectError.code))
        .headers({ 'content-type': 'application/json', 'x-request-id': request.id })
        .send(JSON.stringify(errorToJson(connectError, undefined)));
    });
    await scope.register(fastifyConnectPlugin, {
      ...orderServiceOptions(deps),
      routes: orderServiceRoutes(deps),
      contextValues: (request) => createContextValues().set(jsonBodyKey, request.jsonBody),
    });
  });
}

/**
 * Connect stops reading where a message is too large. What is left on the connection would be taken for the next request, or
 * be waited for, so the answer says that the connection ends, and it does. Node.js asks whether to keep a connection when the
 * head of the answer is written: only then is it known. A body of which nothing was read is drained by Node.js itself.
 */
function endUnreadConnection({ raw }: FastifyRequest, reply: FastifyReply): void {
  const { socket } = raw;
  const isLeftUnread = () => raw.readableDidRead && !raw.complete;
  let keepAlive = reply.raw.shouldKeepAlive;
  Object.defineProperty(reply.raw, 'shouldKeepAlive', {
    get: () => keepAlive && !isLeftUnread(),
    set: (value: boolean) => {
      keepAlive = value;
    },
  });
  reply.raw.once('finish', () => {
    if (isLeftUnread()) socket.destroySoon();
  });
}

/** An uncompressed order in JSON; everything else is Connect's to read. */
function isPlainJson({ headers, url }: FastifyRequest): boolean {
  if (!url.split('?', 1)[0]?.endsWith(createOrderPath)) return false;
  const encoding = headers['content-encoding'] ?? 'identity';
  return encoding === 'identity' && /^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '');
}

async function readBody(payload: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of payload) {
    length += piece.byteLength;
    if (length > messageBytesMax) throw Object.assign(new Error(), { code: 'FST_ERR_CTP_BODY_TOO_LARGE' });
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
