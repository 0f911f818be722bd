import { randomBytes } from 'node:crypto';
import { startTestServer } from '@gateway/dev-postgres/testing';
import type { Credentials } from '@gateway/domain/credentials';
import type { Merchants } from '@gateway/fixtures/fill-call';
import type { MerchantName } from '@gateway/fixtures/fixture';
import { openMerchantAccounts } from '@gateway/postgres/merchant-admin';
import type { WebhookReceiver } from '../webhooks/receiver.ts';
import { type GatewayProcess, type GatewaySettings, setWebhook, startGatewayProcess } from './gateway-process.ts';

/** A gateway process that can crash. */
export interface CrashingGateway extends Pick<GatewayProcess, 'httpUrl' | 'grpcAddress' | 'baseUrl'> {
  /** The process that runs now. */
  pid(): number | undefined;
  /** Ends the gateway as a crash does, and starts it again on the same ports and data. */
  crash(): Promise<void>;
}

/** A gateway with a database of its own, started for one run. */
export interface OwnGateway extends CrashingGateway {
  readonly databaseUrl: string;
  /** One for each client that was set up. */
  readonly credentials: readonly Credentials[];
  /** Sends the events of the first so many clients to a receiver from now on. */
  sendWebhooks(merchants: number, receiver: WebhookReceiver): Promise<void>;
  /** Starts another gateway with the same database and base URL, which ends with this one. */
  startAnother(): Promise<CrashingGateway>;
  /** Rejects when a gateway exits by itself. */
  readonly exited: Promise<never>;
  /** Stops everything and removes the data; the second call waits for the first. */
  stop(): Promise<void>;
}

/** How to set up a client of a gateway. */
export interface MerchantSetup {
  readonly name: string;
  /** `live` by default. */
  readonly kind?: 'live' | 'test' | 'checkout';
  readonly checksumRequired?: true;
  readonly defaultLifetimeSeconds?: number;
}

/** The clients that the fixtures need. */
const fixtureMerchants: Readonly<Record<MerchantName, MerchantSetup>> = {
  first: { name: 'First' },
  second: { name: 'Second' },
  strict: { name: 'Strict', checksumRequired: true },
  test: { name: 'Test', kind: 'test' },
  // Below what the command takes, so that fixtures that wait for an end are quick.
  expiring: { name: 'Expiring', defaultLifetimeSeconds: 1 },
  checkout: { name: 'Checkout', kind: 'checkout' },
};

/** Starts a gateway as {@link startOwnGateway} does, with all clients that the fixtures need. */
export async function startFixtureGateway(
  signal: AbortSignal,
  startDatabase?: () => Promise<Database>,
): Promise<OwnGateway & { readonly merchants: Merchants }> {
  const gateway = await startOwnGateway(Object.values(fixtureMerchants), signal, startDatabase);
  const names = Object.keys(fixtureMerchants);
  const merchants = Object.fromEntries(names.map((name, index) => [name, gateway.credentials[index]]));
  return { ...gateway, merchants: merchants as unknown as Merchants };
}

/** A database for one gateway. */
interface Database {
  readonly url: string;
  /** For the gateway, as a role that may not migrate; absent: `url`. */
  readonly gatewayUrl?: string;
  stop(): Promise<void>;
}

/**
 * Starts a gateway on free ports with these merchants, on a PostgreSQL of its own unless another is given. Nothing is left behind
 * when this fails or `signal` aborts it.
 */
export async function startOwnGateway(
  merchants: readonly MerchantSetup[],
  signal: AbortSignal,
  startDatabase: () => Promise<Database> = startTestServer,
): Promise<OwnGateway> {
  const database = await startDatabase();
  const databaseUrl = database.url;
  const settings = { databaseUrl, secretsKey: randomBytes(32).toString('base64') };
  const ownSettings =
    database.gatewayUrl === undefined ? settings : { ...settings, databaseUrl: database.gatewayUrl, isMigrated: true };
  const stops: (() => Promise<void>)[] = [];
  const exit = Promise.withResolvers<never>();
  exit.promise.catch(() => {});
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= Promise.all(stops.map((stopOne) => stopOne()))
      .then(() => {})
      .finally(database.stop);
    return stopping;
  };
  const open = async (variables = {}) => {
    const { stop: stopOne, exited, ...gateway } = await startCrashing({ ...ownSettings, variables }, signal);
    stops.push(stopOne);
    exited.catch(exit.reject);
    return gateway;
  };
  try {
    const gateway = await open();
    const startAnother = () => open({ BASE_URL: gateway.baseUrl });
    const credentials = await createMerchants(databaseUrl, merchants);
    const sendWebhooks = async (merchants: number, receiver: WebhookReceiver) => {
      const setting = credentials.slice(0, merchants).map(async ({ clientId }, index) => {
        receiver.trust(index, await setWebhook(settings, clientId, receiver.url(index)));
      });
      await Promise.all(setting);
    };
    const own = { databaseUrl, credentials, sendWebhooks, startAnother, stop, exited: exit.promise };
    return { ...gateway, ...own };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts a gateway process as {@link startGatewayProcess} does. Its ports stay the same after a crash. */
async function startCrashing(
  settings: GatewaySettings,
  signal: AbortSignal,
): Promise<CrashingGateway & Pick<GatewayProcess, 'stop' | 'exited'>> {
  let gateway = await startGatewayProcess(settings, signal);
  const exit = Promise.withResolvers<never>();
  gateway.exited.catch(exit.reject);
  const { httpUrl, grpcAddress, baseUrl } = gateway;
  const ports = { httpPort: portOf(httpUrl), grpcPort: portOf(`http://${grpcAddress}`) };
  return {
    ...{ httpUrl, grpcAddress, baseUrl, exited: exit.promise },
    pid: () => gateway.pid,
    stop: () => gateway.stop(),
    async crash() {
      await gateway.kill();
      gateway = await startGatewayProcess({ ...settings, ...ports }, signal);
      gateway.exited.catch(exit.reject);
    },
  };
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

async function createMerchants(databaseUrl: string, merchants: readonly MerchantSetup[]): Promise<Credentials[]> {
  const accounts = openMerchantAccounts({ url: databaseUrl });
  try {
    const created: Credentials[] = [];
    for (const { name, kind, checksumRequired, defaultLifetimeSeconds } of merchants) {
      const credentials = await accounts.create(name, kind);
      if (checksumRequired) await accounts.setChecksumMode(credentials.clientId, 'required');
      if (defaultLifetimeSeconds) await accounts.setDefaultLifetime(credentials.clientId, defaultLifetimeSeconds);
      created.push(credentials);
    }
    return created;
  } finally {
    await accounts.close();
  }
}
