import type { IncomingMessage, ServerOptions } from 'node:http';
import { Server as TlsServer } from 'node:tls';
import type { Failure } from '@order-gateway/domain/failure';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify, type RouteOptions } from 'fastify';
import type { Operation } from '../calls/operation.ts';
import { trackSockets } from '../calls/peers/connection-limit.ts';
import * as limits from '../limits.ts';
import { type PortServer, portOf } from '../runtime/network/listen.ts';
import type { TlsPort } from '../runtime/network/tls.ts';
import type { Readiness } from '../runtime/start/readiness.ts';
import { admitUnauthenticated } from './admit-unauthenticated.ts';
import { connectRoutes } from './connect.ts';
import { healthRoutes } from './health.ts';
import { operationRoutes } from './operation-routes.ts';
import { frameworkFailure } from './problem.ts';
import { sendFailure, startCall } from './requests.ts';
import { type ConnectionsDeps, watchConnections } from './sockets.ts';
import { type WellKnownDeps, wellKnownRoutes } from './well-known.ts';

const invalidHost: Failure = { kind: 'malformed_request', reason: 'The request must have one valid Host header.' };

/**
 * A registered name, an IPv4 address or an IP literal, with or without a port; it may be empty (RFC 9110, 7.2; RFC
 * 3986, 3.2.2).
 */
const hostForm = /^(?:\[[\w:.]+\]|[\w.~!$&'()*+;=%-]*)(?::\d*)?$/;

/** One year, without subdomains, because other hosts of the domain may not have TLS. */
const strictTransportSecurity = 'max-age=31536000';

/** Adds the routes of pages beside the API, such as the console. */
export type AddRoutes = (app: FastifyInstance) => void;

export interface HttpServerDeps extends ConnectionsDeps, WellKnownDeps {
  readonly readiness: Pick<Readiness, 'isReady' | 'servedRatio'>;
}

export interface HttpServerOptions {
  /** Absent: HTTP without TLS. */
  readonly tls?: TlsPort | undefined;
  /** The pages, below the base URL's path. */
  readonly pages?: readonly AddRoutes[];
  /** Sends a page for a path with this start that reaches no route, because it can't be decoded or is too long. */
  readonly unroutablePage?: { readonly pathStart: string; readonly send: (reply: FastifyReply) => Promise<unknown> };
}

/**
 * Creates the server of the HTTP port: the JSON API, pages, health checks, and the Connect and gRPC-Web protocols, all
 * under the base URL's path.
 */
export function createHttpServer(
  deps: HttpServerDeps,
  operations: readonly Operation[],
  pathPrefix: string,
  { tls, pages = [], unroutablePage }: HttpServerOptions = {},
): PortServer {
  const app = fastify({
    routerOptions: { maxParamLength: limits.pathParameterMax },
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionTimeout: deps.responseTakenTimeoutMs,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    ...serverOptions(tls),
    // An undecodable or overlong path reaches no route and no hook.
    frameworkErrors: (error, request, reply) => {
      startCall(deps, request, reply, connections.peerOf(request.raw));
      const isRead = /^(GET|HEAD)$/.test(request.method);
      const isPage = isRead && unroutablePage && request.url.startsWith(`${pathPrefix}${unroutablePage.pathStart}`);
      if (!isPage) return void sendError(error, request, reply);
      unroutablePage.send(reply).catch((cause) => sendError(cause, request, reply));
    },
    clientErrorHandler: (error, socket) => connections.handleClientError(error, socket),
  });
  if (app.server instanceof TlsServer) {
    tls?.renew(app.server);
    // Runs before Fastify's listener, so that every response has the header (RFC 6797, 7.1).
    app.server.prependListener('request', (_request, response) =>
      response.setHeader('strict-transport-security', strictTransportSecurity),
    );
  }
  const destroySockets = trackSockets(app.server);
  const unroutedFailure = collectRoutes(app);
  const connections = watchConnections(app.server, deps, unroutedFailure);
  // Node.js would respond with 417 itself, without an x-request-id.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  // By default, Node.js requests every body with `100 Continue`. If the gateway does not request the body, the client
  // may omit it, so the connection is closed after the response.
  app.server.on('checkContinue', (request, response) => {
    response.shouldKeepAlive = false;
    app.server.emit('request', request, response);
  });
  app.decorateRequest('call');

  const sendError = (error: unknown, { call }: FastifyRequest, reply: FastifyReply) =>
    sendFailure(reply, frameworkFailure(error) ?? call.failInternally(error), deps);

  app.addHook('onRequest', (request, reply, done) => {
    startCall(deps, request, reply, connections.peerOf(request.raw));
    const hostCount = hostCountIn(request.raw);
    const isHostValid = hostForm.test(request.raw.headers.host ?? '');
    if (hostCount > 1 || (hostCount === 0 && request.raw.httpVersion !== '1.0') || !isHostValid) {
      sendFailure(reply.header('connection', 'close'), invalidHost, deps);
    } else if (request.is404) {
      // Checked before the body is read, so that the error does not depend on the body.
      sendFailure(reply, unroutedFailure(request.url), deps);
    } else done();
  });
  app.setErrorHandler(sendError);
  app.register(
    async (scope) => {
      // The handler of a request reads the body itself, after checking the headers.
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser('*', (_request, _body, done) => done(null));
      operationRoutes(scope, deps, operations);
      for (const addRoutes of pages) scope.register(async (part) => addRoutes(part));
      healthRoutes(scope, deps.readiness);
      await connectRoutes(scope, deps, operations);
    },
    { prefix: pathPrefix },
  );
  app.register(async (scope) => {
    admitUnauthenticated(scope, deps, sendFailure);
    wellKnownRoutes(scope, deps);
  });
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

/** Returns the options of Node.js's server, with or without TLS. */
function serverOptions(tls: TlsPort | undefined) {
  const http: ServerOptions = {
    // The Host header is checked below, so that its error is a problem document too.
    requireHostHeader: false,
    // By default, Node.js drops the second of two Content-Type headers, although a proxy may have used the second one.
    // The joined value of both is not a valid media type, so the request is rejected.
    joinDuplicateHeaders: true,
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headersTimeoutMs,
    connectionsCheckingInterval: limits.connectionsCheckEveryMs,
  };
  const handshake = { handshakeTimeout: limits.tlsHandshakeTimeoutMs };
  // Typed as `object`, because in Fastify's types `https` would change the type of the whole instance, although nothing
  // below depends on it.
  const secured: object = tls === undefined ? {} : { https: { ...http, ...tls.context, ...handshake } };
  return { http, ...secured };
}

/** Counts the Host headers (RFC 9112, 3.2). Node.js drops all but the first from `headers`. */
const hostCountIn = ({ rawHeaders }: IncomingMessage) =>
  rawHeaders.filter((text, index) => index % 2 === 0 && text.length === 4 && text.toLowerCase() === 'host').length;

/**
 * Collects the routes that are registered after this call. Returns a function that returns the failure of a request
 * that has no route: `not_found`, or `method_not_allowed` with the methods of its URL for the `Allow` header. Fastify
 * itself responds with 404 even if only the method is unsupported.
 */
function collectRoutes(app: FastifyInstance): (url: string) => Failure {
  const routes: { readonly pattern: RegExp; readonly route: RouteOptions }[] = [];
  app.addHook('onRoute', (route) => {
    const pattern = new RegExp(`^${route.url.replace(/:[a-z_]+/g, '[^/]+').replace('*', '.*')}$`);
    routes.push({ pattern, route });
  });
  return (url) => {
    const [path = ''] = url.split('?', 1);
    const matching = routes.filter(({ pattern }) => pattern.test(path)).map(({ route }) => route);
    if (matching.length === 0) return { kind: 'not_found' };
    // Some routes are registered for all methods and reject some of them. Except for Connect's, they accept only POST.
    const forAll = matching.find(({ method }) => typeof method !== 'string');
    const methods = new Set(matching.map(({ method }) => method));
    const allow = forAll ? (forAll.config?.allow ?? 'POST') : [...methods].join(', ');
    return { kind: 'method_not_allowed', allow };
  };
}
