import { createContextValues } from '@connectrpc/connect';
import { createAsyncIterable } from '@connectrpc/connect/protocol';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import type { FastifyInstance } from 'fastify';
import type { GatewayDeps } from '../gateway-deps.ts';
import { bodyBytesMax } from '../intake/body/call-body.ts';
import type { Receive } from '../intake/receive.ts';
import type { Operation } from '../operations/operation.ts';
import { readBody, rpcMethods } from '../rpc/methods.ts';
import { addMethods, type RpcCall, routerOptions, rpcCallKey, takeTimeout } from '../rpc/router.ts';
import { headersOfFailure } from './problem.ts';
import { isJsonInUtf8, sendFailure, startReading } from './requests.ts';

declare module 'fastify' {
  interface FastifyRequest {
    rpcBody: Uint8Array | undefined;
    rpcRequest: RpcCall['request'];
  }
}

/**
 * The Connect and gRPC-Web protocols through Connect's plugin, with two changes. The body is read before the call and handed over
 * as one chunk: Connect's envelope reader allocates the announced length and takes a time quadratic in the number of chunks. And
 * the message is read as on the other ports (`rpc/methods.ts`): protobuf's JSON mapping rounds numbers, takes the last of two
 * equal keys and reads numbers from strings, and Connect reports an invalid Protobuf message as an error of the server.
 */
export async function connectRoutes(
  app: FastifyInstance,
  deps: GatewayDeps,
  receive: Receive,
  operations: readonly Operation[],
): Promise<void> {
  const methods = rpcMethods(operations);
  await app.register(async (scope) => {
    // Uses the route, because parts of the name may be percent-encoded in the address.
    const methodOfRoute = new Map(
      [...methods].map(([{ parent, name }, method]) => [`${scope.prefix}/${parent.typeName}/${name}`, method]),
    );
    scope.decorateRequest('rpcBody');
    scope.decorateRequest('rpcRequest');
    scope.addHook('onRequest', async (request, reply) => {
      const { call, headers } = request;
      const method = methodOfRoute.get(request.routeOptions.url ?? '');
      // Connect adds a route for every method of a service. The streaming one is served on the gRPC port only.
      if (method === undefined) return sendFailure(reply, { kind: 'not_found' }, deps);
      call.operation = method.operation.method.name;
      const mediaType = headers['content-type'] ?? '';
      const [hasEnvelope, isJson] = [/^application\/grpc-web/.test(mediaType), isJsonInUtf8(mediaType)];
      const bodyForm = { hasEnvelope, messageBytesMax: method.messageBytesMax };
      call.protocol = hasEnvelope ? 'grpc-web' : 'connect';
      // Connect omits the header Allow.
      if (request.method !== 'POST') {
        return sendFailure(reply, { kind: 'method_not_allowed', allow: 'POST' }, deps);
      }
      const received = await receive(call, {
        headers,
        timeoutMs: takeTimeout(headers),
        bodyBytesMax: bodyBytesMax(bodyForm),
        isMediaTypeSupported: isJson || /^application\/(proto|grpc-web(\+proto)?)$/i.test(mediaType),
        accountKind: method.accountKind,
        startReading: (timeoutMs) => startReading(deps, request, reply, { ...bodyForm, timeoutMs }),
      });
      // Otherwise the rest of a large body would be read as the next request.
      reply.raw.once('finish', () => request.raw.resume());
      if (!received.ok) {
        const { failure } = received;
        if (failure.kind === 'unsupported_media_type') return sendFailure(reply, failure, deps);
        // Connect's errors have the status of HTTP, but not its headers.
        if (!hasEnvelope) reply.headers(headersOfFailure(failure));
        request.rpcRequest = received;
        return;
      }
      call.hasJsonBody = isJson;
      request.rpcBody = received.value;
      request.rpcRequest = await readBody(method, received.value, { headers, hasEnvelope, isJson });
      if (isJson && request.rpcRequest !== undefined) {
        request.rpcBody = Buffer.from('{}');
        delete headers['content-encoding'];
      }
    });
    scope.addHook('preHandler', async (request) => {
      const { rpcBody, headers } = request;
      // Connect builds a URL from the host, and compares the length with the body that it gets.
      headers.host = 'gateway';
      delete headers['content-length'];
      request.body = createAsyncIterable(rpcBody === undefined ? [] : [rpcBody]);
    });
    await scope.register(fastifyConnectPlugin, {
      ...routerOptions,
      grpc: false,
      routes: (router) => addMethods(router, methods),
      contextValues: ({ call, rpcRequest: request }) => createContextValues().set(rpcCallKey, { call, request }),
    });
  });
}
