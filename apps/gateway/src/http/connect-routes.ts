import { Readable } from 'node:stream';
import { createContextValues } from '@connectrpc/connect';
import { codeToHttpStatus, errorToJson } from '@connectrpc/connect/protocol-connect';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { GatewayDeps } from '../gateway-deps.ts';
import { connectErrorOf } from '../grpc/connect-error.ts';
import { endlessTimeouts } from '../grpc/endless-timeout.ts';
import { HeldBytes } from '../grpc/held-bytes.ts';
import { jsonBodyKey, orderServiceOptions, orderServiceRoutes } from '../grpc/order-service.ts';
import { inWholeMessages } from '../grpc/whole-messages.ts';
import { messageBytesMax } from '../limits.ts';
import { failureOf } from './failure-of-error.ts';
import { refuse } from './refuse.ts';

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
      // Connect would say so without the header Allow, and none of the methods is one that GET may call.
      if (request.method !== 'POST') return refuse(deps, request, reply, { kind: 'method_not_allowed', allow: 'POST' });
      // For Connect's own refusals before there is a call; the answer to a call brings the call's.
      reply.header('x-request-id', request.id);
      // Connect makes a URL of host and path that nobody looks at, and where it can't, answers 200 with an empty body.
      const { headers } = request.raw;
      headers.host = 'gateway';
      for (const name of endlessTimeouts((name) => headers[name]?.toString())) delete headers[name];
      drainAfterAnswer(request, reply);
    });
    scope.addHook('preParsing', async (request, _reply, payload) => {
      if (!isJsonMessage(request)) return payload;
      request.jsonBody = await readBody(payload);
      return Readable.from([]);
    });
    scope.addHook('preHandler', async (request) => {
      const { headers } = request.raw;
      // Connect would make room for all of it before a byte has come. Node.js holds the body to it; one over the limit is refused.
      if (Number(headers['content-length']) <= messageBytesMax) delete headers['content-length'];
      if (request.jsonBody !== undefined) request.body = {};
    });
    scope.setErrorHandler((error, request, reply) => {
      const failure = failureOf(deps, error, request.id);
      request.outcome = failure.kind;
      const connectError = connectErrorOf(failure, request.id);
      return reply
        .code(codeToHttpStatus(connectError.code))
        .header('content-type', 'application/json')
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
 * Connect stops reading where a message is too large, and its way of reading would destroy the request then, with the rest of
 * the body left on the connection: to be taken for the next request, or waited for. So the request is kept, and the rest is
 * read and thrown away after the answer; the time limit for requests bounds that.
 */
function drainAfterAnswer({ raw }: FastifyRequest, reply: FastifyReply): void {
  raw[Symbol.asyncIterator] = () =>
    inWholeMessages(raw.iterator({ destroyOnReturn: false }), raw.headers['content-type']);
  reply.raw.once('finish', () => raw.resume());
}

/** An uncompressed message in JSON, whatever its charset, which Connect judges; everything else is Connect's to read. */
function isJsonMessage({ headers }: FastifyRequest): boolean {
  const encoding = headers['content-encoding'] ?? 'identity';
  return encoding === 'identity' && /^application\/json\s*(;|$)/i.test(headers['content-type'] ?? '');
}

async function readBody(payload: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const held = new HeldBytes(messageBytesMax);
  for await (const piece of payload) {
    held.add(piece);
    if (held.length > messageBytesMax) throw Object.assign(new Error(), { code: 'FST_ERR_CTP_BODY_TOO_LARGE' });
  }
  return held.bytes();
}
