import { Readable } from 'node:stream';
import { base64Decode } from '@bufbuild/protobuf/wire';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { createContextValues } from '@connectrpc/connect';
import { createAsyncIterable } from '@connectrpc/connect/protocol';
import { fastifyConnectPlugin } from '@connectrpc/connect-fastify';
import type { Failure } from '@order-gateway/domain/failure';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { bodyBytesMax } from '../calls/body/call-body.ts';
import type { Operation } from '../calls/operation.ts';
import { readMembers, rpcMethods, takeTimeout } from '../rpc/methods.ts';
import { addMethods, type RpcCall, routerOptions, rpcCallKey } from '../rpc/router.ts';
import { headersOfFailure } from './problem.ts';
import { type HttpDeps, isJsonInUtf8, sendFailure, startReading } from './requests.ts';

declare module 'fastify' {
  interface FastifyRequest {
    rpcBody: Uint8Array | undefined;
    rpcRequest: RpcCall['request'];
  }
}

/**
 * Adds the Connect and gRPC-Web protocols through Connect's plugin, with two changes. First, the body is read before
 * the call and passed on as one chunk: Connect's envelope reader allocates the announced length, and its time is
 * quadratic in the number of chunks. Second, the message is read as in the other protocols (`rpc/methods.ts`):
 * protobuf's JSON mapping rounds numbers, takes the last of two equal keys and reads numbers from strings, and Connect
 * reports an invalid Protobuf message as a server error.
 *
 * Methods without side effects may be called with GET. Such a call is converted to the equivalent POST, so that the
 * same checks apply.
 */
export async function connectRoutes(
  app: FastifyInstance,
  deps: HttpDeps,
  operations: readonly Operation[],
): Promise<void> {
  const methods = rpcMethods(operations);
  await app.register(async (scope) => {
    // Each method is looked up by its route, because parts of the name may be percent-encoded in the URL.
    const methodOfRoute = new Map(
      [...methods].map(([{ parent, name }, method]) => [`${scope.prefix}/${parent.typeName}/${name}`, method]),
    );
    scope.addHook('onRoute', (route) => {
      const { idempotency } = methodOfRoute.get(route.url)?.operation.method ?? {};
      const isRead = idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
      route.config = { ...route.config, allow: isRead ? 'GET, POST' : 'POST' };
    });
    scope.decorateRequest('rpcBody');
    scope.decorateRequest('rpcRequest');
    scope.addHook('onRequest', async (request, reply) => {
      const { call, headers } = request;
      const method = methodOfRoute.get(request.routeOptions.url ?? '');
      // Connect adds a route for every method of a service, but only the gRPC port serves the streaming method.
      if (method === undefined) return sendFailure(reply, { kind: 'not_found' }, deps);
      call.operation = method.operation.method.name;
      reply.header('cache-control', 'no-store');
      const { allow = '' } = request.routeOptions.config;
      const queryMessage = request.method === 'GET' && allow.includes('GET') ? takeQuery(request) : undefined;
      const mediaType = headers['content-type'] ?? '';
      const [hasEnvelope, isJson] = [/^application\/grpc-web/.test(mediaType), isJsonInUtf8(mediaType)];
      const bodyForm = { hasEnvelope, messageBytesMax: method.messageBytesMax };
      call.protocol = hasEnvelope ? 'grpc-web' : 'connect';
      // Rejected here, because Connect's response has no Allow header.
      if (request.method !== 'POST') {
        return sendFailure(reply, { kind: 'method_not_allowed', allow }, deps);
      }
      const members = await deps.calls.accept(call, {
        incoming: {
          headers,
          timeoutMs: takeTimeout(headers),
          bodyBytesMax: bodyBytesMax(bodyForm),
          isMediaTypeSupported: isJson || /^application\/(proto|grpc-web(\+proto)?)$/i.test(mediaType),
          accountKind: method.accountKind,
          startReading(timeoutMs) {
            const options = { ...bodyForm, timeoutMs };
            if (queryMessage === undefined) return startReading(deps, request, reply, options);
            return deps.calls.readBody(Readable.from(queryMessage.ok ? [queryMessage.value] : []), options);
          },
        },
        decode(body) {
          if (queryMessage?.ok === false) return queryMessage;
          call.hasJsonBody = isJson;
          request.rpcBody = body;
          return readMembers(method, body, { headers, hasEnvelope, isJson });
        },
      });
      // Drains the body. Otherwise, the rest of a large body would be read as the next request.
      reply.raw.once('finish', () => request.raw.resume());
      if (members?.ok === false) {
        const { failure } = members;
        if (failure.kind === 'unsupported_media_type') return sendFailure(reply, failure, deps);
        // Connect's errors have the HTTP status but not the headers.
        if (!hasEnvelope) reply.headers(headersOfFailure(failure));
      }
      request.rpcRequest = members;
      if (isJson && members !== undefined) {
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

/**
 * Converts a GET to the equivalent POST (connectrpc.com/docs/protocol, Unary-Get-Request), and returns the message in
 * its query.
 */
function takeQuery({ raw, headers, query }: FastifyRequest): Result<Buffer, Failure> {
  const { encoding, compression = 'identity', base64, message }: Readonly<Record<string, unknown>> = Object(query);
  raw.method = 'POST';
  headers['content-type'] = encoding === 'json' || encoding === 'proto' ? `application/${encoding}` : '';
  headers['content-encoding'] = String(compression);
  if (typeof message !== 'string') {
    return failed({ kind: 'malformed_json', reason: 'The query must have one parameter "message".' });
  }
  if (base64 !== '1') return success(Buffer.from(message));
  try {
    return success(Buffer.from(base64Decode(message)));
  } catch {
    return failed({ kind: 'malformed_json', reason: 'The parameter "message" is not valid base64.' });
  }
}
