import { startTestServer } from '@gateway/dev-postgres/testing';
import type { Credentials } from '@gateway/domain/credentials';
import { openMerchantAccounts } from '@gateway/postgres/merchant-admin';
import { type GatewayProcess, startGatewayProcess } from './gateway-process.ts';

/** A gateway with a database of its own, started for one run. */
export interface OwnGateway extends Pick<GatewayProcess, 'httpUrl' | 'grpcAddress' | 'baseUrl'> {
  readonly databaseUrl: string;
  /** One for each merchant. */
  readonly credentials: readonly Credentials[];
  /** Ends the gateway as a crash does, and starts it again on the same ports and data. */
  crash(): Promise<void>;
  /** Stops everything and removes the data; the second call waits for the first. */
  stop(): Promise<void>;
}

/** How to set up the merchants of a gateway. */
export interface MerchantSetup {
  readonly name: string;
  readonly checksumRequired?: boolean;
}

/** A database for one gateway. */
interface Database {
  readonly url: string;
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
  let gateway: GatewayProcess | undefined;
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= Promise.resolve(gateway?.stop()).finally(database.stop);
    return stopping;
  };
  try {
    gateway = await startGatewayProcess({ databaseUrl }, signal);
    const { httpUrl, grpcAddress, baseUrl } = gateway;
    const credentials = await createMerchants(databaseUrl, merchants);
    const crash = async () => {
      await gateway?.kill();
      const ports = { httpPort: portOf(httpUrl), grpcPort: portOf(`http://${grpcAddress}`) };
      gateway = await startGatewayProcess({ databaseUrl, ...ports }, signal);
    };
    return { httpUrl, grpcAddress, baseUrl, databaseUrl, credentials, crash, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

async function createMerchants(databaseUrl: string, merchants: readonly MerchantSetup[]): Promise<Credentials[]> {
  const accounts = openMerchantAccounts({ url: databaseUrl });
  try {
    const created: Credentials[] = [];
    for (const { name, checksumRequired } of merchants) {
      const credentials = await accounts.create(name);
      if (checksumRequired === true) await accounts.setChecksumMode(credentials.clientId, 'required');
      created.push(credentials);
    }
    return created;
  } finally {
    await accounts.close();
  }
}
