import type { IncomingMessage, ServerOptions } from 'node:http';
import { Server as TlsServer } from 'node:tls';
import type { Failure } from '@gateway/domain/failure';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { trackSockets } from '../connection-limit.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import * as limits from '../limits.ts';
import { type PortServer, portOf } from '../listen.ts';
import type { RpcService } from '../rpc/context.ts';
import type { TlsPort } from '../tls.ts';
import { admitAnonymously } from './anonymous.ts';
import { connectRoutes } from './connect.ts';
import { watchConnections } from './connections.ts';
import { healthRoutes } from './health.ts';
import { orderRoutes } from './orders.ts';
import { paymentRoutes, sendLinkFailure } from './payments.ts';
import { frameworkFailure } from './problem.ts';
import { referenceRoutes } from './reference.ts';
import { openCall, sendFailure } from './requests.ts';

const notOneHost: Failure = { kind: 'malformed_json', reason: 'The request must have one Host header.' };

/**
 * The HTTP port: the interface's JSON, payment pages, the reference, health, and the Connect and gRPC-Web protocols, all under
 * the base URL's path.
 */
export function createHttpServer(
  deps: GatewayDeps,
  services: readonly RpcService[],
  pathPrefix: string,
  tls?: TlsPort,
): PortServer {
  const serverOptions: ServerOptions = {
    // Checked below, so that this error is a problem document too.
    requireHostHeader: false,
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headersTimeoutMs,
    connectionsCheckingInterval: limits.connectionsCheckEveryMs,
  };
  const handshake = { handshakeTimeout: limits.tlsHandshakeTimeoutMs };
  // An `object`, because Fastify's types let `https` change the type of everything that follows, which stays as it is.
  const secured: object = tls === undefined ? {} : { https: { ...serverOptions, ...tls.context, ...handshake } };
  const app = fastify({
    routerOptions: { maxParamLength: limits.pathParameterMax },
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionTimeout: limits.responseTakenTimeoutMs,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    http: serverOptions,
    ...secured,
    // An undecodable or overlong path reaches no route and no hook.
    frameworkErrors: (error, request, reply) => {
      openCall(deps, request, reply, connections.peerOf(request.raw));
      const isPage = /^(GET|HEAD)$/.test(request.method) && request.url.startsWith(`${pathPrefix}/payment/`);
      if (!isPage) return void sendError(error, request, reply);
      const failure: Failure = { kind: 'not_found', unknown: 'payment_link' };
      sendLinkFailure(reply, failure, deps).catch((cause) => sendError(cause, request, reply));
    },
    clientErrorHandler: (error, socket) => connections.handleClientError(error, socket),
  });
  if (app.server instanceof TlsServer) tls?.renew(app.server);
  const destroySockets = trackSockets(app.server);
  const connections = watchConnections(app.server, deps);
  // Node.js would answer 417 by itself, without an x-request-id.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.decorateRequest('call');
  const allowedMethods = collectAllowedMethods(app);

  const sendError = (error: unknown, { call }: FastifyRequest, reply: FastifyReply) =>
    sendFailure(reply, frameworkFailure(error) ?? call.failInternally(error), deps);

  app.addHook('onRequest', (request, reply, done) => {
    openCall(deps, request, reply, connections.peerOf(request.raw));
    const hosts = hostsIn(request.raw);
    if (hosts > 1 || (hosts === 0 && request.raw.httpVersion !== '1.0')) {
      sendFailure(reply.header('connection', 'close'), notOneHost, deps);
    } else if (request.is404) {
      // Before the body is read: whatever it holds, the error stays the same.
      const allow = allowedMethods(request.url);
      const failure: Failure = allow === undefined ? { kind: 'not_found' } : { kind: 'method_not_allowed', allow };
      sendFailure(reply, failure, deps);
    } else done();
  });
  app.setErrorHandler(sendError);
  app.register(
    async (scope) => {
      orderRoutes(scope, deps);
      scope.register(async (pages) => {
        admitAnonymously(pages, deps, sendLinkFailure);
        paymentRoutes(pages, deps);
      });
      scope.register(async (reference) => {
        admitAnonymously(reference, deps, sendFailure);
        referenceRoutes(reference, deps);
      });
      healthRoutes(scope, deps.readiness);
      await connectRoutes(scope, deps, services);
    },
    { prefix: pathPrefix },
  );
  return {
    async listen(port, host) {
      await app.listen({ port, host, backlog: limits.backlogMax });
      return portOf(app.server);
    },
    async close() {
      connections.close();
      const cutOff = setTimeout(destroySockets, limits.drainTimeoutMs);
      await app.close();
      clearTimeout(cutOff);
    },
  };
}

/** The number of Host headers, of which Node.js drops all but the first (RFC 9112, 3.2). */
const hostsIn = ({ rawHeaders }: IncomingMessage) =>
  rawHeaders.filter((text, index) => index % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host').length;

/**
 * Collects the routes that are registered from now on. The returned function gives the methods that a URL takes, for the `Allow`
 * header: Fastify answers 404 for a wrong method, too.
 */
function collectAllowedMethods(app: FastifyInstance): (url: string) => string | undefined {
  const routes: { readonly pattern: RegExp; readonly method: string; readonly isForAll: boolean }[] = [];
  app.addHook('onRoute', ({ url, method }) => {
    const pattern = new RegExp(`^${url.replace(/:[a-z_]+/g, '[^/]+').replace('*', '.*')}$`);
    // A route for all methods, such as Connect's, takes POST and rejects by itself the others that Fastify knows.
    const isForAll = typeof method !== 'string';
    routes.push({ pattern, method: isForAll ? 'POST' : method, isForAll });
  });
  return (url) => {
    const [path = ''] = url.split('?', 1);
    const matching = routes.filter(({ pattern }) => pattern.test(path));
    if (matching.some(({ isForAll }) => isForAll)) return 'POST';
    return matching.length === 0 ? undefined : matching.map(({ method }) => method).join(', ');
  };
}
