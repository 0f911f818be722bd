import { setTimeout as sleep } from 'node:timers/promises';
import { pathPrefixOf } from '@order-gateway/domain/links';
import type { ChangeOutcome } from '@order-gateway/domain/orders';
import { openAccountDirectory, openConsoleSessions } from '@order-gateway/postgres/accounts';
import { createConnectionEvents, createServerProbe, openWriteCheck } from '@order-gateway/postgres/connections';
import { openMerchantManagement } from '@order-gateway/postgres/merchant-management';
import { openOrderStore } from '@order-gateway/postgres/order-store';
import { eraseOrders } from '@order-gateway/postgres/orders/operators';
import { queueLimits } from '@order-gateway/postgres/queue-limits';
import { openWebhookDeliveries } from '@order-gateway/postgres/webhooks';
import type { Logger } from '@order-gateway/runtime/logger';
import { startWebhookDelivery, type WebhookDelivery } from './background/deliver.ts';
import { startBackgroundJobs } from './background/jobs.ts';
import { createPing, createSender } from './background/send.ts';
import { createAdmission } from './calls/admission.ts';
import { createAuthenticate } from './calls/authenticate.ts';
import { createBodyReader } from './calls/body/call-body.ts';
import { callRecorder, createCallLog } from './calls/call-record.ts';
import { createRejectionPause } from './calls/pause.ts';
import { createRateLimit } from './calls/rate-limit.ts';
import { createUnauthenticatedCalls } from './calls/unauthenticated-calls.ts';
import type { Config } from './config.ts';
import type { Demo, GatewayDeps } from './gateway-deps.ts';
import { type AddRoutes, createHttpServer } from './http/server.ts';
import {
  admissionLimits,
  bodyBytesOfAllMax,
  callTimeoutMs,
  http2Limits,
  readinessCheckTimeoutMs,
  rejectionLimits,
  responseTakenTimeoutMs,
  unauthenticatedLimits,
  webhookLimits,
} from './limits.ts';
import { createOperations } from './operations/all.ts';
import { createCheckLogo } from './operations/logos/check-logo.ts';
import { demoRoutes } from './pages/demo/demo-routes.ts';
import { logoRoutes } from './pages/payment-page/logo-routes.ts';
import { paymentRoutes, unroutablePaymentPage } from './pages/payment-page/payment-routes.ts';
import { referenceRoutes } from './pages/reference/reference-routes.ts';
import { createGrpcServer } from './rpc/server.ts';
import { defaultBaseUrl, hostInUrl, listenOn } from './runtime/network/listen.ts';
import { parseTrustProxy } from './runtime/network/remote-address.ts';
import { openTls } from './runtime/network/tls.ts';
import { createRandomBytes } from './runtime/secrets/random-bytes.ts';
import { createSigningSecrets, erasureKeysOf } from './runtime/secrets/signing-secrets.ts';
import { createReadiness } from './runtime/start/readiness.ts';
import { type Metrics, observeHealth, refusalCounter } from './runtime/telemetry/metrics.ts';
import { startTracing } from './runtime/telemetry/tracing.ts';
import { createEventWatch } from './watches/event-watch.ts';
import { createPageWatch } from './watches/page-watch.ts';

export type Gateway = Awaited<ReturnType<typeof openGateway>>;

/** The configuration of a gateway whose database already runs, with HOST resolved to an address. */
export type GatewayConfig = Omit<
  Config,
  | 'adminPort'
  | 'checkoutPort'
  | 'workers'
  | 'dataDir'
  | 'migrate'
  | 'logLevel'
  | 'operatorConsole'
  | 'operatorDatabaseUrl'
> & {
  readonly databaseUrl: string;
  readonly demo?: Demo | undefined;
  /** Whether the orders may be distributed over several database servers (Citus). */
  readonly hasCitus?: boolean;
  readonly drainDelayMs: number;
};

/** The limits that tests override. `patience` multiplies the time limits that a busy machine can exceed. */
const defaultLimits = { unauthenticated: unauthenticatedLimits, orders: queueLimits.orders, patience: 1 };

/**
 * Opens the stores and both ports of a gateway on a migrated database, and starts its background jobs and deliveries.
 */
export async function openGateway(config: GatewayConfig, logger: Logger, metrics: Metrics, limits = defaultLimits) {
  const { patience } = limits;
  const tls = config.tls && (await openTls(config.tls, logger));
  /** The scheme of the URLs of both ports. */
  const scheme = tls === undefined ? 'http' : 'https';
  /** The address to which both ports are bound, as written in a URL. */
  const host = hostInUrl(config.host);
  const connectionEvents = createConnectionEvents((change) => {
    if (change.kind === 'lost') logger.error({ reason: change.reason }, 'database lost');
    else logger.info('database back');
  });
  const database = {
    url: config.databaseUrl,
    connectionEvents,
    meter: metrics.meter,
    probe: createServerProbe(config.databaseUrl),
    isDistributed: config.hasCitus,
    patience,
  };
  const directory = openAccountDirectory(database);
  const store = openOrderStore({ ...database, limits: limits.orders });
  const writeCheck = openWriteCheck(database);
  const consoleSessions = config.console ? openConsoleSessions(database) : undefined;
  const management = config.selfService ? openMerchantManagement(database) : undefined;
  const { webhookAddresses } = config;
  const pings = createSender({ allowedAddresses: webhookAddresses, timeoutMs: webhookLimits.pingTimeoutMs * patience });
  let baseUrl = config.baseUrl ?? defaultBaseUrl(scheme, host, config.httpPort);
  let webhooks: WebhookDelivery | undefined;
  const eventWatch = createEventWatch(store.findNewEvents, logger);
  const pageWatch = createPageWatch(store.findForPage, logger);
  const wake = () => {
    webhooks?.wake();
    eventWatch.wake();
  };
  const check = async () => {
    const [written] = await Promise.all([writeCheck.run(), directory.check()]);
    return written;
  };
  const deps: GatewayDeps = {
    store: {
      ...store,
      change: notifying(store.change, wake),
      expireNow: notifying(store.expireNow, wake),
      refusePayment: notifying(store.refusePayment, wake),
    },
    eventWatch,
    countRefusal: refusalCounter(metrics.meter),
    randomBytes: createRandomBytes(),
    now: Date.now,
    authenticate: createAuthenticate({ directory, now: Date.now, monotonicNow }),
    rateLimit: createRateLimit(config.rateLimit, monotonicNow),
    admission: createAdmission(admissionLimits, store.oldestOrderMs),
    unauthenticatedCalls: createUnauthenticatedCalls(limits.unauthenticated, monotonicNow),
    rejectionPause: createRejectionPause(rejectionLimits, monotonicNow),
    readBody: createBodyReader(bodyBytesOfAllMax),
    baseUrl: () => baseUrl,
    readiness: createReadiness({ check, logger }, { timeoutMs: readinessCheckTimeoutMs * patience }),
    checkoutTemplate: config.checkoutTemplate,
    checkoutMethod: config.checkoutMethod,
    securityContact: config.securityContact,
    demo: config.demo,
    trustProxy: config.trustProxy === undefined ? undefined : parseTrustProxy(config.trustProxy),
    signingSecrets: config.secretsKeys && createSigningSecrets(config.secretsKeys),
    erasureKeys: config.secretsKeys && erasureKeysOf(config.secretsKeys),
    management,
    webhookAddresses,
    ping: createPing(pings, Date.now),
    checkLogo: createCheckLogo(),
    findLogo: store.findLogo,
    pageWatch,
    logger,
    callTimeoutMs: callTimeoutMs * patience,
    responseTakenTimeoutMs: responseTakenTimeoutMs * patience,
    recordCall: callRecorder(metrics.meter),
    tracing: config.tracesSampler === undefined ? undefined : startTracing(config.tracesSampler),
    callLog: createCallLog(logger),
  };
  const deliveries = openWebhookDeliveries(database);
  observeHealth(metrics.meter, {
    isReady: deps.readiness.isReady,
    clockOffsetMs: deps.readiness.clockOffsetMs,
    webhookHealth: deliveries.readHealth,
    certificateExpiry: tls?.expiry,
  });
  const operations = createOperations(deps);
  const redirectUri = () => `${baseUrl}/console/openid/callback`;
  const openId =
    consoleSessions &&
    config.openId &&
    (await import('./pages/console/openid.ts')).createOpenId(config.openId, redirectUri, patience);
  const addConsole =
    consoleSessions &&
    (await import('./pages/console/console.ts')).consoleRoutes({ deps, operations, sessions: consoleSessions, openId });
  const pages: AddRoutes[] = [
    (app) => paymentRoutes(app, deps),
    (app) => demoRoutes(app, deps),
    (app) => referenceRoutes(app, deps),
    (app) => logoRoutes(app, deps),
    ...(addConsole === undefined ? [] : [addConsole]),
  ];
  const http = createHttpServer(deps, operations, pathPrefixOf(baseUrl), {
    tls: tls?.http,
    pages,
    unroutablePage: unroutablePaymentPage(deps),
  });
  const grpc = createGrpcServer(deps, operations, {
    tls: tls?.grpc,
    limits: { ...http2Limits, streamTimeoutMs: http2Limits.streamTimeoutMs * patience },
  });
  const backgroundWork = { ...store, eraseOldOrders: erasureOf(config, deps) };
  const backgroundJobs = startBackgroundJobs(backgroundWork, logger, metrics.meter);
  const closeResources = async () => {
    tls?.close();
    eventWatch.close();
    pageWatch.close();
    await Promise.all([http.close(), grpc.close(), backgroundJobs.stop(), webhooks?.close()]);
    pings.close();
    const resources = [store, directory, management, consoleSessions, writeCheck, deliveries, deps.tracing];
    await Promise.all(resources.map((resource) => resource?.close()));
  };
  try {
    const httpPort = await listenOn('HTTP_PORT', config.host, config.httpPort, http);
    baseUrl = config.baseUrl ?? defaultBaseUrl(scheme, host, httpPort);
    const grpcPort = await listenOn('GRPC_PORT', config.host, config.grpcPort, grpc);
    if (deps.signingSecrets !== undefined) {
      webhooks = startWebhookDelivery({
        deliveries,
        sender: createSender({
          allowedAddresses: webhookAddresses,
          timeoutMs: webhookLimits.attemptTimeoutMs * patience,
        }),
        secrets: deps.signingSecrets,
        baseUrl: deps.baseUrl,
        now: deps.now,
        logger,
        meter: metrics.meter,
      });
    }
    // Logs a wrong clock now, even if nothing requests health checks.
    await deps.readiness.isReady();
    /**
     * Fails health checks and continues to accept requests for the drain delay. Then stops listening, lets calls in
     * flight finish, and closes the connections to the database.
     */
    const close = async () => {
      deps.readiness.drain();
      eventWatch.close();
      pageWatch.close();
      await sleep(config.drainDelayMs);
      await closeResources();
    };
    /** Reads the files of the TLS certificate immediately, in addition to the regular check every few seconds. */
    const reloadTls = async () => tls?.reload();
    return { baseUrl, scheme, host, httpPort, grpcPort, close, reloadTls };
  } catch (error) {
    await closeResources();
    throw error;
  }
}

/**
 * Returns the job that erases customers' data from orders older than RETENTION_DAYS; `undefined` if that variable or
 * the keys are not set.
 */
function erasureOf({ retentionDays, databaseUrl: url }: GatewayConfig, { erasureKeys, logger }: GatewayDeps) {
  if (retentionDays === undefined || erasureKeys === undefined) return undefined;
  const [key] = erasureKeys;
  return async (signal: AbortSignal) => {
    const target = { by: 'age', before: { daysAgo: retentionDays } } as const;
    const count = await eraseOrders({ url, key, actor: 'RETENTION_DAYS', signal }, target);
    if (count > 0) logger.info({ count, days: retentionDays }, 'erased old orders');
    return { isDone: true };
  };
}

/** Wraps a function that changes an order, so that each change calls `wake`. */
function notifying<Change>(apply: (change: Change, timeoutMs: number) => Promise<ChangeOutcome>, wake: () => void) {
  return async (change: Change, timeoutMs: number): Promise<ChangeOutcome> => {
    const outcome = await apply(change, timeoutMs);
    if (outcome.kind === 'changed') wake();
    return outcome;
  };
}

const monotonicNow = () => performance.now();
