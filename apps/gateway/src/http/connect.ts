import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { createContextValues } from '@connectrpc/connect';
import { createAsyncIterable } from '@connectrpc/connect/protocol';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import type { FastifyInstance } from 'fastify';
import type { CallBody } from '../call-body.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { messageBytesMax } from '../limits.ts';
import { clientKindOf, type RpcService, routerOptions, routesOf, rpcCallKey, takeTimeout } from '../rpc/context.ts';
import { isJsonInUtf8, sendFailure } from './requests.ts';

declare module 'fastify' {
  interface FastifyRequest {
    rpcBody: CallBody;
  }
}

/**
 * The Connect and gRPC-Web protocols through Connect's plugin, with two changes. The body is read before the call and handed over
 * as one chunk: Connect's envelope reader allocates the announced length and takes a time quadratic in the number of chunks. And
 * a JSON message is read as strictly as on `POST /order`, by the method: protobuf's JSON mapping rounds numbers, takes the last
 * of two equal keys and reads numbers from strings. The plugin gets an empty message instead.
 */
export async function connectRoutes(
  app: FastifyInstance,
  deps: GatewayDeps,
  services: readonly RpcService[],
): Promise<void> {
  await app.register(async (scope) => {
    scope.decorateRequest('rpcBody');
    scope.addHook('onRequest', async (request, reply) => {
      const { call, headers } = request;
      // The last part of the route, which is the name of a method.
      call.operation = request.routeOptions.url?.split('/').at(-1) ?? call.operation;
      call.protocol = isGrpcWeb(headers) ? 'grpc-web' : 'connect';
      // Connect omits the header Allow, and none of the methods takes GET.
      if (request.method !== 'POST') {
        return sendFailure(reply, { kind: 'method_not_allowed', allow: 'POST' }, deps);
      }
      const isBinary = /^application\/(proto|grpc-web(\+proto)?)$/i.test(headers['content-type'] ?? '');
      if (!isBinary && !isJsonInUtf8(headers)) {
        return sendFailure(reply, { kind: 'unsupported_media_type' }, deps);
      }
      call.limitTimeout(takeTimeout(headers));
    });
    scope.addHook('preParsing', async (request, reply) => {
      const { call, headers } = request;
      const isAnnouncedTooLarge = Number(headers['content-length']) > messageBytesMax;
      // By the route: in the address, parts of the name may be percent-encoded.
      const { url = '' } = request.routeOptions;
      const service = services.find(({ descriptor }) => url.includes(`/${descriptor.typeName}/`));
      const isClient = service === undefined || (await call.authenticate(clientKindOf(service.descriptor))).ok;
      const options = { hasEnvelope: isGrpcWeb(headers), timeoutMs: call.timeLeftMs() };
      // Without a client Connect responds before it looks at the body.
      if (isAnnouncedTooLarge) request.rpcBody = 'too_large';
      else request.rpcBody = isClient ? await deps.readBody(request.raw, options).take() : Buffer.alloc(0);
      // Else the rest of a large body would be read as the next request.
      reply.raw.once('finish', () => request.raw.resume());
      return Readable.from([]);
    });
    scope.addHook('preHandler', async (request) => {
      const { rpcBody, headers } = request;
      // Connect makes a URL of the host, and compares the length with the body that it gets.
      headers.host = 'gateway';
      delete headers['content-length'];
      const bytes = isJsonInUtf8(headers) ? Buffer.from('{}') : rpcBody;
      request.body = createAsyncIterable(typeof bytes === 'string' ? [] : [bytes]);
    });
    await scope.register(fastifyConnectPlugin, {
      ...routerOptions,
      grpc: false,
      routes: routesOf(services),
      contextValues: ({ call, rpcBody: body, headers }) =>
        createContextValues().set(rpcCallKey, { call, body, isJson: isJsonInUtf8(headers) }),
    });
  });
}

function isGrpcWeb(headers: IncomingHttpHeaders): boolean {
  return headers['content-type']?.startsWith('application/grpc-web') === true;
}
