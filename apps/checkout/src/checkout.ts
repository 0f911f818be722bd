import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Credentials } from '@order-gateway/domain/accounts';
import type { BackgroundJob } from '@order-gateway/runtime/background-jobs';
import { createEncryption, type SecretsKeys } from '@order-gateway/runtime/encryption';
import type { Logger } from '@order-gateway/runtime/logger';
import { parseTrustProxy } from '@order-gateway/runtime/remote-address';
import { type FastifyRequest, fastify } from 'fastify';
import { type Advance, type AdvanceDeps, createAdvance } from './attempts/advance.ts';
import { createSweep } from './attempts/sweep.ts';
import { openGateway } from './gateway/gateway.ts';
import { sendMessage } from './html/layout.ts';
import { startJobs } from './jobs.ts';
import { createMetrics } from './metrics.ts';
import { hookRoutes } from './pages/hooks.ts';
import { limitRequests } from './pages/limit-requests.ts';
import { payRoutes } from './pages/pay.ts';
import { transferRoutes } from './pages/transfer.ts';
import { accountReader } from './providers/accounts.ts';
import { createProviders } from './providers/all.ts';
import type { Fetch } from './providers/provider.ts';
import { createRefunds } from './refunds/refunds.ts';
import { openImport } from './statements/import.ts';
import { openErasure } from './store/erasure.ts';
import { openStore } from './store/store.ts';
import { traceRequests } from './tracing.ts';

/** The configuration and dependencies of a checkout. */
export interface CheckoutOptions {
  readonly host: string;
  /** 0 for a free port. */
  readonly port: number;
  readonly databaseUrl: string;
  /** The public address; by default that of the port on `localhost`. */
  readonly baseUrl?: string | undefined;
  /** The public address of the gateway, whose pages may send forms. */
  readonly gatewayUrl: string;
  readonly gatewayGrpcUrl: string;
  /** The checkout's account at the gateway. */
  readonly credentials: Credentials;
  readonly secretsKeys: SecretsKeys | undefined;
  /** The proxies whose X-Forwarded-For is used; absent: none. */
  readonly trustProxy?: string | undefined;
  /** The age at which personal data is erased; absent: never. */
  readonly retentionDays?: number | undefined;
  /** The port for Prometheus; absent without one. */
  readonly adminPort?: number | undefined;
  /** Multiplies the time limits that a busy machine can exceed, in tests. */
  readonly patience?: number | undefined;
  /** Replaces the network in tests. */
  readonly send?: Fetch;
}

/** No form and no webhook of a provider is larger. */
const bodyBytesMax = 1_048_576;

/** Opens a checkout, which serves its pages and continues attempts until it is closed. */
export async function openCheckout(options: CheckoutOptions, logger: Logger) {
  const store = openStore({ url: options.databaseUrl, patience: options.patience });
  let baseUrl = options.baseUrl ?? '';
  const providers = createProviders(store, { baseUrl: () => baseUrl, send: options.send });
  const metrics = createMetrics(store);
  const admin = metrics.createServer();
  const deps: AdvanceDeps = {
    store,
    gateway: openGateway(options.gatewayGrpcUrl, options.credentials, options.patience),
    providers,
    accountOf: accountReader(store, options.secretsKeys && createEncryption<string>(options.secretsKeys)),
    baseUrl: () => baseUrl,
    logger,
    metrics,
  };
  const advance = createAdvance(deps);
  const app = fastify({
    bodyLimit: bodyBytesMax,
    // The path is not valid percent-encoding.
    frameworkErrors: (_error, _request, reply) => void sendMessage(reply, 'unknown'),
  });
  limitRequests(app, options.trustProxy === undefined ? undefined : parseTrustProxy(options.trustProxy));
  traceRequests(app);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_request: FastifyRequest, body: string) => new URLSearchParams(body),
  );
  // No path has an encoded character: PostgreSQL rejects NUL, and headers reject most others.
  app.addHook('onRequest', async ({ url }, reply) => (/^[^?]*%/.test(url) ? reply.callNotFound() : undefined));
  app.setNotFoundHandler((_request, reply) => sendMessage(reply, 'unknown'));
  app.setErrorHandler((error: { readonly statusCode?: number; readonly name: string }, _request, reply) => {
    const { statusCode = 500 } = error;
    if (statusCode < 500) return reply.code(statusCode).send({ status: statusCode });
    logger.error({ err: error }, 'request failed');
    return sendMessage(reply, 'trouble');
  });
  app.get('/health/live', async () => ({ status: 'ok' }));
  app.get('/health/ready', async (_request, reply) => {
    const isReady = await store.due(1).then(
      () => true,
      () => false,
    );
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ok' : 'unavailable' });
  });
  payRoutes(app, { ...deps, advance, gatewayUrl: options.gatewayUrl });
  hookRoutes(app, { ...deps, advance });
  for (const provider of providers.values()) provider.routes?.(app, advance);
  transferRoutes(app, deps);
  const refunds = createRefunds({ ...deps, advance });
  const closeServers = async () => {
    admin.close();
    admin.closeAllConnections();
    await app.close();
  };
  try {
    await app.listen({ host: options.host, port: options.port });
    if (options.adminPort !== undefined) {
      admin.listen(options.adminPort, options.host);
      await once(admin, 'listening');
    }
  } catch (error) {
    await closeServers();
    await store.close();
    throw error;
  }
  const { port } = app.server.address() as AddressInfo;
  baseUrl ||= `http://localhost:${port}`;
  const address = admin.address() as AddressInfo | null;
  const jobs = startJobs(jobsOf({ ...deps, advance, refunds, retentionDays: options.retentionDays }), logger);
  const close = async () => {
    await Promise.all([closeServers(), jobs.stop()]);
    await store.close();
  };
  return { baseUrl, port, adminPort: address?.port, advance, store, refunds, close };
}

interface JobDeps extends AdvanceDeps, Pick<CheckoutOptions, 'retentionDays'> {
  readonly advance: Advance;
  readonly refunds: ReturnType<typeof createRefunds>;
}

/** Returns what the checkout does without a request. */
function jobsOf({ refunds, retentionDays, ...deps }: JobDeps): readonly BackgroundJob[] {
  const { store, logger } = deps;
  const { continueDue, readLists, compareNext } = createSweep(deps);
  const erase = async (days: number) => {
    const count = await openErasure(store).eraseOlderThan(days);
    if (count > 0) logger.info({ count, days }, 'erased old data');
  };
  return [
    { name: 'due attempts', everyMs: 1_000, run: continueDue },
    { name: "providers' lists", everyMs: 1_000, run: readLists },
    { name: 'comparison', everyMs: 1_000, run: compareNext },
    { name: 'refunds', everyMs: 5_000, run: refunds.makePending },
    { name: 'reversals', everyMs: 5_000, run: refunds.reportListed },
    { name: 'keys', everyMs: 3_600_000, run: refunds.eraseKeys },
    { name: 'transfers', everyMs: 60_000, run: openImport(deps).reportWaiting },
    ...(retentionDays === undefined ? [] : [{ name: 'erasure', everyMs: 3_600_000, run: () => erase(retentionDays) }]),
  ];
}
