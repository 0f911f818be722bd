import { randomBytes } from 'node:crypto';
import { startTestServer } from '@order-gateway/dev-postgres/testing';
import { type Credentials, liveSecretsMax } from '@order-gateway/domain/accounts';
import { endpointsMax } from '@order-gateway/domain/webhooks';
import type { MerchantName } from '@order-gateway/fixtures';
import type { Merchants } from '@order-gateway/fixtures/replay';
import { openAccountAdmin } from '@order-gateway/postgres/accounts';
import { testPatience } from '@order-gateway/postgres/testing/patience';
import { openWebhookEndpoints } from '@order-gateway/postgres/webhooks';
import type { WebhookReceiver } from '../webhooks/receiver.ts';
import { type GatewayProcess, setWebhook, startGatewayProcess } from './gateway-process.ts';

/** A gateway that was started for one run, with its own database unless another was given. */
export type OwnGateway = Awaited<ReturnType<typeof startOwnGateway>>;

export interface MerchantSetup {
  readonly name: string;
  /** `live` by default. */
  readonly kind?: 'live' | 'test' | 'checkout';
  readonly checksumRequired?: true;
  readonly getsCustomerData?: true;
  readonly makesRefunds?: true;
  readonly defaultLifetimeSeconds?: number;
  /** Whether the merchant gets the maximum number of webhook endpoints and client secrets. */
  readonly isFull?: true;
}

const fixtureMerchants: Readonly<Record<MerchantName, MerchantSetup>> = {
  first: { name: 'First' },
  second: { name: 'Second' },
  strict: { name: 'Strict', checksumRequired: true },
  test: { name: 'Test', kind: 'test' },
  // The lifetime is shorter than the command accepts, so that fixtures need not wait long for an expiry, but long
  // enough to start a payment first.
  expiring: { name: 'Expiring', defaultLifetimeSeconds: 10 },
  managed: { name: 'Managed' },
  notified: { name: 'Notified' },
  full: { name: 'Full', isFull: true },
  checkout: { name: 'Checkout', kind: 'checkout', makesRefunds: true },
  second_checkout: { name: 'Second Checkout', kind: 'checkout', getsCustomerData: true },
};

/** Starts a gateway as {@link startOwnGateway} does, with all accounts that the fixtures need. */
export async function startFixtureGateway(
  signal: AbortSignal,
  startDatabase?: () => Promise<Database>,
): Promise<OwnGateway & { readonly merchants: Merchants }> {
  const gateway = await startOwnGateway(Object.values(fixtureMerchants), signal, startDatabase, {
    WEBHOOK_ALLOW_PRIVATE: '0',
  });
  const names = Object.keys(fixtureMerchants);
  const merchants = Object.fromEntries(names.map((name, index) => [name, gateway.credentials[index]]));
  return { ...gateway, merchants: merchants as unknown as Merchants };
}

interface Database {
  readonly url: string;
  /**
   * The URL for the gateway, which can have a role that may not migrate; `url` by default. If it is set, the gateway
   * does not migrate the database.
   */
  readonly gatewayUrl?: string;
  stop(): Promise<void>;
}

/**
 * Starts a gateway on free ports with these accounts, on its own PostgreSQL unless another database is given. If the
 * start fails or `signal` aborts it, nothing remains.
 */
export async function startOwnGateway(
  merchants: readonly MerchantSetup[],
  signal: AbortSignal,
  startDatabase: () => Promise<Database> = startTestServer,
  variables: Readonly<Record<string, string>> = {},
) {
  const database = await startDatabase();
  const databaseUrl = database.url;
  const settings = { databaseUrl, secretsKey: randomBytes(32).toString('base64') };
  const gatewaySettings =
    database.gatewayUrl === undefined ? settings : { ...settings, databaseUrl: database.gatewayUrl, isMigrated: true };
  const gateways: GatewayProcess[] = [];
  let stopping: Promise<void> | undefined;
  /** Stops everything and removes the data; the second call waits for the first. */
  const stop = () => {
    stopping ??= Promise.all(gateways.map((gateway) => gateway.stop()))
      .then(() => {})
      .finally(database.stop);
    return stopping;
  };
  const start = async (variables = {}) => {
    const gateway = await startGatewayProcess({ ...gatewaySettings, variables }, signal);
    gateways.push(gateway);
    return gateway;
  };
  try {
    const gateway = await start(variables);
    /** The credentials of the accounts, in the order of `merchants`. */
    const credentials: readonly Credentials[] = await createMerchants(databaseUrl, merchants);
    return {
      ...gateway,
      databaseUrl,
      credentials,
      stop,
      /** Starts another gateway with the same database and base URL. `stop` stops all gateways. */
      startAnother: () => start({ BASE_URL: gateway.baseUrl }),
      /** Sends the events of the first `merchants` merchants to a receiver from now on. */
      async sendWebhooks(merchants: number, receiver: WebhookReceiver): Promise<void> {
        const setting = credentials.slice(0, merchants).map(async ({ clientId }, index) => {
          receiver.trust(index, await setWebhook(settings, clientId, receiver.url(index)));
        });
        await Promise.all(setting);
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function createMerchants(databaseUrl: string, merchants: readonly MerchantSetup[]): Promise<Credentials[]> {
  await using accounts = openAccountAdmin({ url: databaseUrl, patience: testPatience });
  const created: Credentials[] = [];
  for (const { name, kind, checksumRequired, defaultLifetimeSeconds, isFull, ...checkout } of merchants) {
    const credentials = await accounts.create(name, kind, checkout);
    if (checksumRequired) await accounts.setChecksumMode(credentials.clientId, 'required');
    if (defaultLifetimeSeconds) await accounts.setDefaultLifetime(credentials.clientId, defaultLifetimeSeconds);
    if (isFull) {
      for (let count = 1; count < liveSecretsMax; count += 1) await accounts.addSecret(credentials.clientId, null);
      await addEndpoints(databaseUrl, credentials);
    }
    created.push(credentials);
  }
  return created;
}

/** Adds the maximum number of endpoints. They are disabled. */
async function addEndpoints(databaseUrl: string, { clientId }: Credentials): Promise<void> {
  await using endpoints = openWebhookEndpoints({ url: databaseUrl, patience: testPatience });
  const merchant = await endpoints.find(clientId);
  if (merchant === undefined) throw new Error('the merchant was not created');
  const endpoint = { url: 'https://shop.invalid', signingSecret: randomBytes(61), disabledAt: new Date() };
  for (let count = 0; count < endpointsMax; count += 1) await endpoints.create(merchant.merchantId, endpoint);
}
