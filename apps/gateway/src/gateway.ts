import { setTimeout as sleep } from 'node:timers/promises';
import type { OrderStore } from '@gateway/domain/order-store';
import { type BaseUrl, pathPrefixOf } from '@gateway/domain/payment-link';
import { createConnectionEvents } from '@gateway/postgres/client';
import { eraseOrders } from '@gateway/postgres/erase-orders';
import { openMerchantDirectory } from '@gateway/postgres/merchant-directory';
import { openOrderStore } from '@gateway/postgres/order-store';
import { createServerProbe } from '@gateway/postgres/server-probe';
import { openWebhookDeliveries } from '@gateway/postgres/webhook-deliveries';
import { openWriteCheck } from '@gateway/postgres/write-check';
import { createAdmission } from './admission.ts';
import { createAnonymousCalls } from './auth/anonymous-calls.ts';
import { createAuthenticate } from './auth/authenticate.ts';
import { createRateLimit } from './auth/rate-limit.ts';
import { createBodyReader } from './call-body.ts';
import { createCallLog } from './call-log.ts';
import type { Config } from './config.ts';
import type { GatewayDeps } from './gateway-deps.ts';
import { createHttpServer } from './http/server.ts';
import { admissionLimits, anonymousLimits, bodyBytesOfAllMax } from './limits.ts';
import { hostInUrl, listenOn } from './listen.ts';
import type { Logger } from './logger.ts';
import { startBackgroundJobs } from './orders/background-jobs.ts';
import { createRandomBytes } from './random-bytes.ts';
import { createReadiness } from './readiness.ts';
import { parseTrustProxy } from './remote-address.ts';
import { checkoutService } from './rpc/checkout-service.ts';
import { orderService } from './rpc/order-service.ts';
import { withPublicServices } from './rpc/public-services.ts';
import { createGrpcServer } from './rpc/server.ts';
import { createSigningSecrets, erasureKeysOf } from './signing-secrets.ts';
import { callRecorder, type Metrics } from './telemetry/metrics.ts';
import { startTracing } from './telemetry/tracing.ts';
import { openTls } from './tls.ts';
import { startWebhookDelivery, type WebhookDelivery } from './webhooks/deliver.ts';
import { createSender } from './webhooks/send.ts';

const dayMs = 86_400_000;

export type Gateway = Awaited<ReturnType<typeof openGateway>>;

/** The configuration, with the URL of a running database, and the address of HOST. */
export type GatewayConfig = Omit<Config, 'adminPort' | 'workers' | 'dataDir' | 'migrate' | 'logLevel'> & {
  readonly databaseUrl: string;
  /** Whether the orders may be distributed over several servers. */
  readonly hasCitus?: boolean;
  readonly drainDelayMs: number;
  /** Orders that may wait for their batch; absent: the order store's own bound. */
  readonly ordersWaitingMax?: number | undefined;
  /** Tests shorten them. */
  readonly anonymousLimits?: typeof anonymousLimits | undefined;
};

/** Opens the stores and both ports of a gateway on a migrated database. */
export async function openGateway(config: GatewayConfig, logger: Logger, metrics: Metrics) {
  const tls = config.tls && (await openTls(config.tls, logger));
  /** Of the URLs of both ports. */
  const scheme = tls === undefined ? 'http' : 'https';
  /** The address that both ports are bound to, as in a URL. */
  const host = hostInUrl(config.host);
  const connectionEvents = createConnectionEvents((change) => {
    if (change.kind === 'lost') logger.error({ reason: change.reason }, 'database lost');
    else logger.error('database back');
  });
  const database = {
    url: config.databaseUrl,
    connectionEvents,
    meter: metrics.meter,
    probe: createServerProbe(config.databaseUrl),
  };
  const directory = openMerchantDirectory(database);
  const store = openOrderStore({ ...database, waitingMax: config.ordersWaitingMax, isDistributed: config.hasCitus });
  const writeCheck = openWriteCheck(database);
  let baseUrl = config.baseUrl ?? ownBaseUrl(scheme, host, config.httpPort);
  let webhooks: WebhookDelivery | undefined;
  const deps: GatewayDeps = {
    store: { ...store, change: waking(store.change, () => webhooks?.wake()) },
    randomBytes: createRandomBytes(),
    now: Date.now,
    authenticate: createAuthenticate({ directory, now: Date.now, monotonicNow }),
    rateLimit: createRateLimit({ callsPerSecond: config.rateLimit, monotonicNow }),
    admission: createAdmission({ oldestOrderMs: store.oldestOrderMs, limits: admissionLimits }),
    anonymousCalls: createAnonymousCalls({ limits: config.anonymousLimits ?? anonymousLimits, monotonicNow }),
    readBody: createBodyReader(bodyBytesOfAllMax),
    baseUrl: () => baseUrl,
    readiness: createReadiness({ check: writeCheck.run, logger }),
    checkoutTemplate: config.checkoutTemplate,
    trustProxy: config.trustProxy === undefined ? undefined : parseTrustProxy(config.trustProxy),
    signingSecrets: config.secretsKeys && createSigningSecrets(config.secretsKeys),
    erasureKeys: config.secretsKeys && erasureKeysOf(config.secretsKeys),
    logger,
    recordCall: callRecorder(metrics.meter),
    tracing: config.tracedShare === undefined ? undefined : startTracing(config.tracedShare),
    callLog: createCallLog(logger),
  };
  const services = [orderService(deps), checkoutService(deps)];
  const http = createHttpServer(deps, services, pathPrefixOf(baseUrl), tls?.http);
  const grpc = createGrpcServer(deps, withPublicServices(deps, services), { tls: tls?.grpc });
  const backgroundJobs = startBackgroundJobs({ ...store, eraseOldOrders: erasureOf(config, deps) }, logger);
  const close = async () => {
    tls?.close();
    await Promise.all([http.close(), grpc.close(), backgroundJobs.stop(), webhooks?.close()]);
    await Promise.all([store.close(), directory.close(), writeCheck.close(), deps.tracing?.close()]);
  };
  try {
    const httpPort = await listenOn('HTTP_PORT', config.host, config.httpPort, http);
    baseUrl = config.baseUrl ?? ownBaseUrl(scheme, host, httpPort);
    const grpcPort = await listenOn('GRPC_PORT', config.host, config.grpcPort, grpc);
    if (deps.signingSecrets !== undefined) {
      webhooks = startWebhookDelivery({
        deliveries: openWebhookDeliveries(database),
        sender: createSender({ allowPrivate: config.webhookAllowPrivate }),
        secrets: deps.signingSecrets,
        baseUrl: deps.baseUrl,
        now: deps.now,
        logger,
        meter: metrics.meter,
      });
    }
    /**
     * Fails health checks while requests go on for the drain delay. Then stops listening, lets calls in flight finish, and closes
     * the connections to the database.
     */
    const drain = async () => {
      deps.readiness.drain();
      await sleep(config.drainDelayMs);
      await close();
    };
    /** Reads the files of the TLS certificate now. They are also read every few seconds. */
    const reloadTls = async () => tls?.reload();
    return { baseUrl, scheme, host, httpPort, grpcPort, close: drain, reloadTls };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Erases customers' data from orders that are older than RETENTION_DAYS. */
function erasureOf({ retentionDays, databaseUrl: url }: GatewayConfig, { erasureKeys, logger, now }: GatewayDeps) {
  if (retentionDays === undefined || erasureKeys === undefined) return undefined;
  const [key] = erasureKeys;
  return async (signal: AbortSignal) => {
    const before = new Date(now() - retentionDays * dayMs);
    const count = await eraseOrders({ url, key, actor: 'RETENTION_DAYS', signal }, { by: 'age', before });
    if (count > 0) logger.info({ count, before }, 'erased old orders');
    return { isDone: true };
  };
}

/** Changes orders, and has the events of the changes delivered at once. */
function waking(change: OrderStore['change'], wake: () => void): OrderStore['change'] {
  return async (...args) => {
    const outcome = await change(...args);
    if (outcome.kind === 'changed') wake();
    return outcome;
  };
}

const monotonicNow = () => performance.now();

/** A server that is bound to one of these is reached as `localhost`. */
const localhostAddresses: readonly string[] = ['127.0.0.1', '0.0.0.0', '[::]'];

function ownBaseUrl(scheme: 'http' | 'https', host: string, httpPort: number): BaseUrl {
  const url = `${scheme}://${host}:${httpPort}`;
  // A URL can't hold a link-local address with its interface (fe80::1%eth0).
  return (
    localhostAddresses.includes(host) || !URL.canParse(url) ? `${scheme}://localhost:${httpPort}` : url
  ) as BaseUrl;
}
