import { randomBytes } from 'node:crypto';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestServer } from '@order-gateway/dev-postgres/testing';
import type { Credentials, MerchantMode } from '@order-gateway/domain/accounts';
import { parseBaseUrl, parseCheckoutTemplate, pathPrefixOf } from '@order-gateway/domain/links';
import { createSigningSecret, formatSigningSecret } from '@order-gateway/domain/webhooks';
import { type AccountAdmin, openAccountAdmin } from '@order-gateway/postgres/accounts';
import { migrateDatabase } from '@order-gateway/postgres/migrate';
import { queueLimits } from '@order-gateway/postgres/queue-limits';
import { createMigratedDatabase } from '@order-gateway/postgres/testing/migrated-database';
import { testPatience } from '@order-gateway/postgres/testing/patience';
import { openWebhookEndpoints } from '@order-gateway/postgres/webhooks';
import type { AllowedAddresses } from '@order-gateway/runtime/ip-address';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { type Gateway, openGateway } from '../../src/gateway.ts';
import { createAdminServer } from '../../src/http/admin-server.ts';
import { unauthenticatedLimits } from '../../src/limits.ts';
import type { OpenIdSettings } from '../../src/pages/console/openid.ts';
import { openOperatorView } from '../../src/pages/console/operator/operator-view.ts';
import { type DemoMerchant, findOrCreateDemoMerchant } from '../../src/pages/demo/demo-merchant.ts';
import type { TlsFiles } from '../../src/runtime/network/tls.ts';
import { createSigningSecrets } from '../../src/runtime/secrets/signing-secrets.ts';
import { createMetrics } from '../../src/runtime/telemetry/metrics.ts';
import { createMemoryLogger, type MemoryLogger } from './memory-logger.ts';
import { type Caller, credentialHeaders } from './send-order.ts';

/** A gateway on free ports with its own database, one merchant and one checkout system. */
export interface RunningGateway extends Gateway, Omit<MemoryLogger, 'logger'> {
  readonly databaseUrl: string;
  readonly credentials: Credentials;
  readonly demo: DemoMerchant | undefined;
  /** The headers with the merchant's credentials. */
  readonly headers: Record<string, string>;
  /** A checkout system, which takes payments for all merchants. */
  readonly checkout: Pick<RunningGateway, 'url' | 'credentials' | 'headers'>;
  readonly accounts: AccountAdmin;
  /** Creates a merchant with no orders. */
  newMerchant(name?: string, mode?: MerchantMode): Promise<Caller & Pick<RunningGateway, 'accounts'>>;
  /** The gateway's local address, with the path prefix of its routes. */
  readonly url: string;
  readonly grpcUrl: string;
  /** The port that serves metrics and the operator's view. */
  readonly adminPort: number;
}

export const testSecretsKey = new Uint8Array(32).fill(7);

/** The SECRETS_KEY of the gateways that tests start. */
export const testSecretsKeyText = Buffer.from(testSecretsKey).toString('base64');

/** Limits that let tests make any number of failed calls. */
const noUnauthenticatedLimits = { ...unauthenticatedLimits, inFlightMax: 1_000_000, rejectedPerSecond: 1_000_000 };

interface RunOptions {
  readonly baseUrl?: string;
  readonly rateLimit?: number;
  /** Limits of the queue of new orders. */
  readonly orders?: Partial<typeof queueLimits.orders>;
  readonly unauthenticatedLimits?: typeof unauthenticatedLimits;
  /** 1 in tests of time limits. Otherwise, a busy machine does not exceed any. */
  readonly patience?: 1;
  readonly checkoutUrl?: string;
  /** The setting of the checkout system. */
  readonly lateDays?: number;
  readonly checkoutMethod?: 'get' | 'post';
  readonly securityContact?: string;
  readonly mode?: MerchantMode;
  readonly hasSecretsKey?: boolean;
  readonly selfService?: boolean;
  readonly hasConsole?: boolean;
  readonly hasOperatorView?: boolean;
  readonly openId?: OpenIdSettings;
  /** Whether the gateway has a demo merchant. */
  readonly hasDemo?: boolean;
  readonly webhookAddresses?: AllowedAddresses;
  readonly tls?: TlsFiles;
  readonly trustProxy?: string | undefined;
  /** The server that holds the gateway's database, in place of the shared test server. */
  readonly server?: TestServer;
  /**
   * Returns the URL with which the gateway, its accounts and `databaseUrl` reach the database, such as that of a
   * pooler.
   */
  readonly through?: ((databaseUrl: string) => Promise<string>) | undefined;
}

/** Returns a gateway that runs during all tests of a file or a `describe`. */
export function useGateway(options?: RunOptions): RunningGateway {
  const gateway = {} as RunningGateway;
  beforeAll(async () => void Object.assign(gateway, await startGateway(options)));
  afterAll(() => gateway.close?.());
  return gateway;
}

/** Starts a gateway, and closes it when the test has finished. */
export async function runGateway(options?: RunOptions): Promise<RunningGateway> {
  const gateway = await startGateway(options);
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Starts a gateway that runs until it is closed. Closing it twice has no further effect. */
export async function startGateway(options: RunOptions = {}): Promise<RunningGateway> {
  const postgres = await (options.server?.createDatabase(migrateDatabase) ?? createMigratedDatabase());
  const databaseUrl = (await options.through?.(postgres.url)) ?? postgres.url;
  const accounts = openAccountAdmin({ url: databaseUrl, patience: testPatience });
  const credentials = await accounts.create('Test Shop', options.mode);
  const checkoutCredentials = await accounts.create('Checkout Service', 'checkout', { lateDays: options.lateDays });
  const demo = options.hasDemo ? await createDemoMerchant(databaseUrl) : undefined;
  const { logger, calls, errors, warnings, outages } = createMemoryLogger();
  const baseUrl = options.baseUrl === undefined ? undefined : parseBaseUrl(options.baseUrl);
  const metrics = createMetrics();
  const admin = createAdminServer(metrics);
  if (options.hasOperatorView) {
    const deps = { databaseUrl, secretsKeys: [testSecretsKey], metrics, logger } as const;
    admin.add(openOperatorView(deps));
  }
  const gateway = await openGateway(
    {
      host: '127.0.0.1',
      httpPort: 0,
      grpcPort: 0,
      baseUrl,
      databaseUrl,
      rateLimit: options.rateLimit,
      checkoutTemplate: parseCheckoutTemplate(options.checkoutUrl ?? ''),
      checkoutMethod: options.checkoutMethod ?? 'get',
      securityContact: options.securityContact,
      demo,
      drainDelayMs: 0,
      secretsKeys: options.hasSecretsKey === false ? undefined : [testSecretsKey],
      selfService: options.selfService ?? true,
      console: options.hasConsole ?? false,
      openId: options.openId,
      webhookAddresses: options.webhookAddresses ?? 'any',
      tracesSampler: undefined,
      retentionDays: undefined,
      tls: options.tls,
      trustProxy: options.trustProxy,
    },
    logger,
    metrics,
    {
      unauthenticated: options.unauthenticatedLimits ?? noUnauthenticatedLimits,
      orders: { ...queueLimits.orders, ...options.orders },
      patience: options.patience ?? testPatience,
    },
  );
  const close = async () => {
    await gateway.close();
    await admin.close();
    await accounts.close();
    if (options.server === undefined) await postgres.drop();
  };
  let closed: Promise<void> | undefined;
  const url = `${gateway.scheme}://127.0.0.1:${gateway.httpPort}${pathPrefixOf(gateway.baseUrl)}`;
  return {
    ...gateway,
    databaseUrl,
    demo,
    credentials,
    headers: credentialHeaders(credentials),
    calls,
    errors,
    outages,
    warnings,
    checkout: { url, credentials: checkoutCredentials, headers: credentialHeaders(checkoutCredentials) },
    url,
    accounts,
    newMerchant: async (name = 'Shop', mode) => ({ url, accounts, credentials: await accounts.create(name, mode) }),
    grpcUrl: `${gateway.scheme}://127.0.0.1:${gateway.grpcPort}`,
    adminPort: await admin.listen(0, '127.0.0.1'),
    close: () => (closed ??= close()),
  };
}

async function createDemoMerchant(url: string): Promise<DemoMerchant> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gateway-demo-'));
  return await findOrCreateDemoMerchant({ url, dataDir: folder.path, secretsKeys: [testSecretsKey] });
}

/** Returns a gateway's metrics, in the Prometheus text format. */
export async function scrape({ adminPort }: RunningGateway): Promise<string> {
  return (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
}

/**
 * Creates an endpoint for a merchant, disabled if there is no URL. Returns its signing secret in the merchants' format.
 * If the merchant already has an endpoint, enables that one with the URL instead; the returned secret is then unused.
 */
export async function giveSigningSecret(databaseUrl: string, clientId: string, url?: string): Promise<string> {
  const endpoints = openWebhookEndpoints({ url: databaseUrl, patience: testPatience });
  try {
    const merchant = await endpoints.find(clientId);
    if (merchant === undefined) throw new Error(`there is no merchant ${clientId}`);
    const secret = createSigningSecret(randomBytes);
    const signingSecret = createSigningSecrets([testSecretsKey]).encrypt(merchant.merchantId, secret);
    const endpoint = url === undefined ? { url: 'https://shop.example.com', disabledAt: new Date() } : { url };
    const { merchantId, endpoint: oldest } = merchant;
    if (oldest === undefined) await endpoints.create(merchantId, { ...endpoint, signingSecret });
    else await endpoints.update(merchantId, oldest.endpointId, { url: endpoint.url, status: 'enabled' });
    return formatSigningSecret(secret);
  } finally {
    await endpoints.close();
  }
}
