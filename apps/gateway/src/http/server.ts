import type { Failure } from '@gateway/domain/failure';
import { type FastifyInstance, fastify } from 'fastify';
import * as limits from '../limits.ts';
import { requestIdOf } from '../request-id.ts';
import { watchAnswers } from './answers-under-way.ts';
import { connectRoutes } from './connect-routes.ts';
import { failureOf } from './failure-of-error.ts';
import { healthRoutes } from './health-routes.ts';
import { type OrderLane, openOrderLane } from './order-lane.ts';
import { orderLookupRoutes } from './order-lookup-routes.ts';
import { answerPlainOrder, orderRoutes } from './order-routes.ts';
import { type PaymentDeps, paymentRoutes, refuseUndecodableLink } from './payment-routes.ts';
import { referenceRoutes } from './reference-routes.ts';
import { refuse } from './refuse.ts';
import { logRequests } from './request-log.ts';
import { answerUnreadable } from './unreadable-request.ts';
import { watchRoutes } from './wrong-address.ts';

export interface HttpDeps extends PaymentDeps {
  /** Whether the database answers. */
  readonly isReady: () => Promise<boolean>;
}

export interface HttpListener {
  /** Gives the port that was bound. */
  listen(port: number, host: string): Promise<number>;
  /** Takes no new requests and lets those under way finish. */
  close(): Promise<void>;
}

const endIdleEveryMs = 50;

const noHost: Failure = { kind: 'malformed_json', reason: 'The request has no Host header.' };

/**
 * The HTTP door: the interface's JSON, payment pages, the reference, health, and the Connect and gRPC-Web protocols, all under
 * the base URL's path.
 */
export function createHttpListener(deps: HttpDeps, pathPrefix: string): HttpListener {
  const app = fastify({
    bodyLimit: limits.messageBytesMax,
    routerOptions: { maxParamLength: limits.pathParameterMax },
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionTimeout: limits.answerTakenTimeoutMs,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    http: {
      // Checked below, so that this refusal is a problem document too.
      requireHostHeader: false,
      maxHeaderSize: limits.headerBytesMax,
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: limits.connectionsCheckEveryMs,
    },
    frameworkErrors: (error, request, reply) => {
      const fail = (cause: unknown) => refuse(deps, request, reply, failureOf(deps, cause, request.id));
      const isRead = request.method === 'GET' || request.method === 'HEAD';
      if (isRead && request.url.startsWith(`${pathPrefix}/payment/`))
        refuseUndecodableLink(deps, request, reply).catch(fail);
      else fail(error);
    },
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket, deps, answers),
    genReqId: (request) => requestIdOf(request.headers['x-request-id']?.toString(), deps.randomBytes),
  });
  const answers = watchAnswers(app.server);
  const lane = openOrderLane(app.server, {
    path: `${pathPrefix}/order`,
    answer: (request) => answerPlainOrder(deps, request),
    limits,
  });
  app.server.maxConnections = limits.connectionsMax;
  logRequests(app, deps.log);
  const wrongAddress = watchRoutes(app);
  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.host === undefined && request.raw.httpVersion !== '1.0')
      refuse(deps, request, reply.header('connection', 'close'), noHost);
    // Before the body: whatever it is, it can't make another failure of a wrong path or method.
    else if (request.is404) refuse(deps, request, reply, wrongAddress(request.url));
    else done();
  });
  app.setErrorHandler((error, request, reply) => refuse(deps, request, reply, failureOf(deps, error, request.id)));
  app.register(
    async (scope) => {
      orderRoutes(scope, deps);
      orderLookupRoutes(scope, deps);
      paymentRoutes(scope, deps);
      referenceRoutes(scope, deps);
      healthRoutes(scope, deps);
      await connectRoutes(scope, deps);
    },
    { prefix: pathPrefix },
  );
  return {
    async listen(port, host) {
      await app.listen({ port, host });
      const address = app.server.address();
      return typeof address === 'object' && address !== null ? address.port : port;
    },
    async close() {
      answers.endConnections();
      await close(app, lane);
    },
  };
}

/** A connection whose last answer goes out while the listener closes is idle only then, so idle ones are ended repeatedly. */
async function close(app: FastifyInstance, lane: OrderLane): Promise<void> {
  lane.endConnections();
  const endIdle = setInterval(() => {
    app.server.closeIdleConnections();
    lane.endConnections();
  }, endIdleEveryMs);
  const cutOff = setTimeout(() => {
    app.server.closeAllConnections();
    lane.destroyConnections();
  }, limits.drainTimeoutMs);
  await app.close();
  clearInterval(endIdle);
  clearTimeout(cutOff);
}
