import { setTimeout as sleep } from 'node:timers/promises';
import { lateDays as lateDaysRange } from '@order-gateway/domain/accounts';
import { pathPrefixOf } from '@order-gateway/domain/links';
import { openAccountDirectory, openConsoleSessions } from '@order-gateway/postgres/accounts';
import { createConnectionEvents, createServerProbe, openWriteCheck } from '@order-gateway/postgres/connections';
import { openMerchantManagement } from '@order-gateway/postgres/merchant-management';
import { openOrderStore } from '@order-gateway/postgres/order-store';
import { eraseOrders } from '@order-gateway/postgres/orders/operators';
import { queueLimits } from '@order-gateway/postgres/queue-limits';
import { openWebhookDeliveries } from '@order-gateway/postgres/webhooks';
import type { SecretsKeys } from '@order-gateway/runtime/encryption';
import type { Logger } from '@order-gateway/runtime/logger';
import { parseTrustProxy } from '@order-gateway/runtime/remote-address';
import { startWebhookDelivery, type WebhookDelivery } from './background/deliver.ts';
import { startBackgroundJobs } from './background/jobs.ts';
import { createPing, createSender } from './background/send.ts';
import { createAdmission, createRateLimit } from './calls/admission.ts';
import { createAuthenticate } from './calls/authenticate.ts';
import { createBodyReader } from './calls/body/call-body.ts';
import { callRecorder, createCallLog } from './calls/call-record.ts';
import type { Operation } from './calls/operation.ts';
import { createRejectionPause } from './calls/pause.ts';
import { type Calls, type CallsDeps, createCalls } from './calls/receive.ts';
import { createUnauthenticatedCalls } from './calls/unauthenticated-calls.ts';
import type { Config } from './config.ts';
import { type AddRoutes, createHttpServer, type HttpServerDeps } from './http/server.ts';
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
import { createWatchEvents } from './operations/events.ts';
import { createCheckLogo } from './operations/logos/check-logo.ts';
import type { OperationDeps } from './operations/service.ts';
import type { VisitDeps } from './pages/console/visit.ts';
import type { Demo } from './pages/demo/demo-merchant.ts';
import { demoRoutes } from './pages/demo/demo-routes.ts';
import { logoRoutes } from './pages/payment-page/logo-routes.ts';
import type { CheckoutLink } from './pages/payment-page/payment-page.ts';
import { type PaymentRoutesDeps, paymentRoutes, unroutablePaymentPage } from './pages/payment-page/payment-routes.ts';
import { referenceRoutes } from './pages/reference/reference-routes.ts';
import { createGrpcServer, type GrpcServerDeps } from './rpc/server.ts';
import { defaultBaseUrl, hostInUrl, listenOn } from './runtime/network/listen.ts';
import { openTls } from './runtime/network/tls.ts';
import { createRandomBytes } from './runtime/secrets/random-bytes.ts';
import { createSigningSecrets, erasureKeysOf } from './runtime/secrets/signing-secrets.ts';
import { createReadiness } from './runtime/start/readiness.ts';
import { type Metrics, observeHealth, refusalCounter } from './runtime/telemetry/metrics.ts';
import { startTracing } from './runtime/telemetry/tracing.ts';
import { createEventWatch } from './watches/event-watch.ts';
import { notifying } from './watches/notifying.ts';
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
  const { meter } = metrics;
  const tls = config.tls && (await openTls(config.tls, logger));
  /** The scheme of the URLs of both ports. */
  const scheme = tls === undefined ? 'http' : 'https';
  /** The address to which both ports are bound, as written in a URL. */
  const host = hostInUrl(config.host);
  const baseUrlAt = (port: number) => config.baseUrl ?? defaultBaseUrl(scheme, host, port);
  let currentBaseUrl = baseUrlAt(config.httpPort);
  const baseUrl = () => currentBaseUrl;
  let currentLateDays: number = lateDaysRange.byDefault;
  const lateDays = () => currentLateDays;
  let webhooks: WebhookDelivery | undefined;
  const stores = openStores(config, logger, metrics, limits);
  const eventWatch = createEventWatch(stores.orders.findNewEvents, logger);
  const pageWatch = createPageWatch(stores.orders.findForPage, logger);
  const wake = () => {
    webhooks?.wake();
    eventWatch.wake();
  };
  const randomBytes = createRandomBytes();
  const tracing = config.tracesSampler === undefined ? undefined : startTracing(config.tracesSampler);
  const recordCall = callRecorder(meter);
  const calls = callsOf(config, stores, limits, { randomBytes, logger, recordCall, tracing });
  const { webhookAddresses: allowedAddresses } = config;
  const pings = createSender({ allowedAddresses, timeoutMs: webhookLimits.pingTimeoutMs * patience });
  const signingSecrets = config.secretsKeys && createSigningSecrets(config.secretsKeys);
  const operationDeps: OperationDeps = {
    store: notifying(stores.orders, wake),
    eventWatch,
    countRefusal: refusalCounter(meter),
    randomBytes,
    now,
    baseUrl,
    lateDays,
    signingSecrets,
    erasureKeys: config.secretsKeys && erasureKeysOf(config.secretsKeys),
    management: stores.management,
    webhookAddresses: allowedAddresses,
    ping: createPing(pings, now),
    checkLogo: createCheckLogo(),
  };
  const operations = createOperations(operationDeps);
  const { deliveries, check } = stores;
  const readiness = createReadiness({ check, logger }, { timeoutMs: readinessCheckTimeoutMs * patience });
  observeHealth(meter, {
    ...readiness,
    webhookHealth: deliveries.readHealth,
    refundHealth: stores.orders.readRefundHealth,
    certificateExpiry: tls?.expiry,
  });
  const ports = { calls, baseUrl, readiness, logger, responseTakenTimeoutMs: responseTakenTimeoutMs * patience };
  const pages = await pagesOf(config, stores, { ...operationDeps, ...ports, pageWatch }, operations, patience);
  const watchEvents = createWatchEvents(operationDeps);
  const { http, grpc } = serversOf(config, tls, { ...ports, watchEvents }, operations, pages, patience);
  const backgroundWork = {
    ...stores.orders,
    eraseOldOrders: erasureOf(config, operationDeps.erasureKeys, logger),
    async readLateDays() {
      currentLateDays = await stores.directory.longestLateDays();
    },
  };
  const backgroundJobs = startBackgroundJobs(backgroundWork, logger, meter);
  const closeWatches = () => [eventWatch, pageWatch].forEach((watch) => void watch.close());
  const closeResources = async () => {
    tls?.close();
    closeWatches();
    await Promise.all([http.close(), grpc.close(), backgroundJobs.stop(), webhooks?.close()]);
    pings.close();
    await Promise.all([stores.close(), tracing?.close()]);
  };
  try {
    const httpPort = await listenOn('HTTP_PORT', config.host, config.httpPort, http);
    currentBaseUrl = baseUrlAt(httpPort);
    const grpcPort = await listenOn('GRPC_PORT', config.host, config.grpcPort, grpc);
    if (signingSecrets !== undefined) {
      const sender = createSender({ allowedAddresses, timeoutMs: webhookLimits.attemptTimeoutMs * patience });
      webhooks = startWebhookDelivery({ ...operationDeps, deliveries, sender, secrets: signingSecrets, logger, meter });
    }
    // Logs a wrong clock now, even if nothing requests health checks.
    await readiness.isReady();
    /**
     * Fails health checks and continues to accept requests for the drain delay. Then stops listening, lets calls in
     * flight finish, and closes the connections to the database.
     */
    const close = async () => {
      readiness.drain();
      closeWatches();
      await sleep(config.drainDelayMs);
      await closeResources();
    };
    /** Reads the files of the TLS certificate immediately, in addition to the regular check every few seconds. */
    const reloadTls = async () => tls?.reload();
    return { baseUrl: baseUrl(), scheme, host, httpPort, grpcPort, close, reloadTls };
  } catch (error) {
    await closeResources();
    throw error;
  }
}

type Stores = ReturnType<typeof openStores>;

/** Opens everything that the gateway stores in its database. */
function openStores(config: GatewayConfig, logger: Logger, { meter }: Metrics, limits: typeof defaultLimits) {
  const connectionEvents = createConnectionEvents((change) => {
    if (change.kind === 'lost') logger.error({ reason: change.reason }, 'database lost');
    else logger.info('database back');
  });
  const { databaseUrl: url, hasCitus: isDistributed } = config;
  const probe = createServerProbe(url, limits.patience);
  const database = { url, connectionEvents, meter, probe, isDistributed, patience: limits.patience };
  const directory = openAccountDirectory(database);
  const orders = openOrderStore({ ...database, limits: limits.orders });
  const writeCheck = openWriteCheck(database);
  const consoleSessions = config.console ? openConsoleSessions(database) : undefined;
  const management = config.selfService ? openMerchantManagement(database) : undefined;
  const deliveries = openWebhookDeliveries(database);
  return {
    directory,
    orders,
    consoleSessions,
    management,
    deliveries,
    /** Checks that the database can be written and read, for some merchants at least. Returns what it found. */
    async check() {
      const checks = [writeCheck.run(), orders.readServedRatio(), directory.check()] as const;
      const [written, servedRatio] = await Promise.all(checks);
      if (servedRatio === 0) throw new Error('no server of merchants can store orders');
      return { ...written, servedRatio };
    },
    async close() {
      const all = [orders, directory, management, consoleSessions, writeCheck, deliveries];
      await Promise.all(all.map((store) => store?.close()));
    },
  };
}

/** Creates what every call passes. */
function callsOf(
  { rateLimit }: GatewayConfig,
  { directory, orders }: Stores,
  limits: typeof defaultLimits,
  deps: Pick<CallsDeps, 'randomBytes' | 'logger' | 'recordCall' | 'tracing'>,
): Calls {
  return createCalls({
    ...deps,
    callLog: createCallLog(deps.logger),
    callTimeoutMs: callTimeoutMs * limits.patience,
    authenticate: createAuthenticate({ directory, now, monotonicNow }),
    rateLimit: createRateLimit(rateLimit, monotonicNow),
    admission: createAdmission(admissionLimits, orders.oldestOrderMs),
    unauthenticatedCalls: createUnauthenticatedCalls(limits.unauthenticated, monotonicNow),
    rejectionPause: createRejectionPause(rejectionLimits, monotonicNow),
    readBody: createBodyReader(bodyBytesOfAllMax),
  });
}

/** Creates the pages of the HTTP port, each with the dependencies that it declares. */
async function pagesOf(
  config: GatewayConfig,
  { orders: { findLogo }, consoleSessions: sessions }: Stores,
  deps: Omit<PaymentRoutesDeps, keyof CheckoutLink> & VisitDeps,
  operations: readonly Operation[],
  patience: number,
) {
  const { demo, checkoutTemplate, checkoutMethod } = config;
  const redirectUri = () => `${deps.baseUrl()}/console/openid/callback`;
  const openId =
    sessions &&
    config.openId &&
    (await import('./pages/console/openid.ts')).createOpenId(config.openId, redirectUri, patience);
  const addConsole =
    sessions && (await import('./pages/console/console.ts')).consoleRoutes({ deps, operations, sessions, openId });
  const pages: AddRoutes[] = [
    (app) => paymentRoutes(app, { ...deps, checkoutTemplate, checkoutMethod }),
    (app) => demoRoutes(app, { ...deps, demo }),
    (app) => referenceRoutes(app, { ...deps, demo }),
    (app) => logoRoutes(app, { ...deps, findLogo }),
    ...(addConsole === undefined ? [] : [addConsole]),
  ];
  return { pages, unroutablePage: unroutablePaymentPage(deps) };
}

/** Creates the servers of both ports. */
function serversOf(
  config: GatewayConfig,
  tls: Awaited<ReturnType<typeof openTls>> | undefined,
  ports: Omit<HttpServerDeps & GrpcServerDeps, 'trustProxy' | 'now'>,
  operations: readonly Operation[],
  pages: Awaited<ReturnType<typeof pagesOf>>,
  patience: number,
) {
  const { securityContact } = config;
  const trustProxy = config.trustProxy === undefined ? undefined : parseTrustProxy(config.trustProxy);
  const pathPrefix = pathPrefixOf(ports.baseUrl());
  const httpDeps = { ...ports, trustProxy, now, securityContact };
  const http = createHttpServer(httpDeps, operations, pathPrefix, { tls: tls?.http, ...pages });
  const limits = { ...http2Limits, streamTimeoutMs: http2Limits.streamTimeoutMs * patience };
  const grpc = createGrpcServer({ ...ports, trustProxy }, operations, { tls: tls?.grpc, limits });
  return { http, grpc };
}

/**
 * Returns the job that erases customers' data from orders older than RETENTION_DAYS; `undefined` if that variable or
 * the keys are not set.
 */
function erasureOf(
  { retentionDays, databaseUrl: url }: GatewayConfig,
  erasureKeys: SecretsKeys | undefined,
  logger: Logger,
) {
  if (retentionDays === undefined || erasureKeys === undefined) return undefined;
  const [key] = erasureKeys;
  return async (signal: AbortSignal) => {
    const target = { by: 'age', before: { daysAgo: retentionDays } } as const;
    const count = await eraseOrders({ url, key, actor: 'RETENTION_DAYS', signal }, target);
    if (count > 0) logger.info({ count, days: retentionDays }, 'erased old orders');
  };
}

const { now } = Date;
const monotonicNow = () => performance.now();
