import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDevPostgres } from '@gateway/dev-postgres';
import type { Credentials } from '@gateway/fixtures/fill-call';
import { openMerchantAccounts } from '@gateway/postgres/merchant-admin';
import { type GatewayAddresses, type GatewayProcess, startGatewayProcess } from '../gateway-process.ts';

/** A gateway on a folder of its own, with merchants. */
export interface LoadGateway extends GatewayAddresses {
  readonly dataDir: string;
  readonly databaseUrl: string;
  readonly credentials: readonly Credentials[];
  /** Ends the gateway as a crash does, and starts it again on the same ports and data. */
  crash(): Promise<void>;
  /** Stops everything and removes the folder. The second call waits for the first one's end. */
  stop(): Promise<void>;
}

/** Starts a gateway for one run. Nothing is left behind when this fails, or when `signal` aborts it. */
export async function startLoadGateway(merchants: number, signal: AbortSignal): Promise<LoadGateway> {
  const dataDir = await mkdtemp(join(tmpdir(), 'order-gateway-load-'));
  const removeData = () => rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  let gateway: GatewayProcess | undefined;
  let releaseDatabase: (() => Promise<void>) | undefined;
  const end = async () => {
    await gateway?.stop().catch(() => {});
    await releaseDatabase?.();
    await removeData();
  };
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= end();
    return stopping;
  };
  try {
    gateway = await startGatewayProcess({ dataDir }, signal);
    // Joined and not started: the gateway keeps it. Holding on to it keeps it up while the gateway is away.
    const database = await startDevPostgres({ dataDir });
    releaseDatabase = database.stop;
    const credentials = await createMerchants(database.url, merchants);
    const { httpUrl, grpcAddress } = gateway;
    const crash = async () => {
      await gateway?.kill();
      const ports = { httpPort: portOf(httpUrl), grpcPort: portOf(`http://${grpcAddress}`) };
      gateway = await startGatewayProcess({ dataDir, ...ports }, signal);
    };
    return { httpUrl, grpcAddress, dataDir, databaseUrl: database.url, credentials, crash, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

/** As the merchant command makes them, without a process for each. */
async function createMerchants(databaseUrl: string, count: number): Promise<Credentials[]> {
  const accounts = openMerchantAccounts({ url: databaseUrl });
  try {
    const made: Credentials[] = [];
    for (let number = 1; number <= count; number += 1) {
      made.push(await accounts.create(`Load ${number}`));
    }
    return made;
  } finally {
    await accounts.close();
  }
}

/**
 * The credentials for a gateway that runs already: from a file with one JSON object a line as the merchant command prints them,
 * or of one merchant from the environment. Rejects with a sentence where there are too few.
 */
export async function givenCredentials(
  file: string | undefined,
  merchants: number,
  env: NodeJS.ProcessEnv,
): Promise<readonly Credentials[]> {
  const given = file === undefined ? fromEnvironment(env) : parseCredentials(file, await readFile(file, 'utf8'));
  if (given.length < merchants) {
    const told = file === undefined ? 'CLIENT_ID and CLIENT_SECRET hold those of one' : `${file} holds ${given.length}`;
    throw new Error(`credentials of ${merchants} merchants are needed, and ${told}; give a file with --credentials`);
  }
  return given.slice(0, merchants);
}

function fromEnvironment({ CLIENT_ID: clientId, CLIENT_SECRET: clientSecret }: NodeJS.ProcessEnv): Credentials[] {
  if (!clientId || !clientSecret) throw new Error('set CLIENT_ID and CLIENT_SECRET to the credentials of a merchant');
  return [{ clientId, clientSecret }];
}

function parseCredentials(file: string, text: string): Credentials[] {
  return text
    .split('\n')
    .map((line, index) => ({ line, number: index + 1 }))
    .filter(({ line }) => line.trim() !== '')
    .map(({ line, number }) => {
      const read = credentialsIn(line);
      if (read === undefined)
        throw new Error(`${file}, line ${number}: must be an object with client_id, client_secret`);
      return read;
    });
}

function credentialsIn(line: string): Credentials | undefined {
  try {
    const { client_id: clientId, client_secret: clientSecret } = JSON.parse(line);
    return typeof clientId === 'string' && typeof clientSecret === 'string' ? { clientId, clientSecret } : undefined;
  } catch {
    return undefined;
  }
}
