import { cpus, totalmem } from 'node:os';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { z } from 'zod';

/** The machine of the load generator, and the versions in use. A version that could not be read is `unknown`. */
export interface Environment {
  readonly machine: string;
  readonly node: string;
  readonly gateway: string;
  readonly postgres: string;
}

const healthSchema = z.object({ version: z.string() });

/** Asks the gateway and, if its URL is known, the database for their versions. Never rejects. */
export async function readEnvironment(httpUrl: string, databaseUrl: string | undefined): Promise<Environment> {
  const gateway = async () => {
    const response = await fetch(`${httpUrl}/health/live`, { signal: AbortSignal.timeout(5_000) });
    return healthSchema.parse(await response.json()).version;
  };
  const postgres = async () => {
    if (databaseUrl === undefined) return unknown;
    const [row] = await runQuery(databaseUrl, 'show server_version');
    return String(row?.server_version);
  };
  const orUnknown = (version: Promise<string>) => version.catch(() => unknown);
  const [gatewayVersion, postgresVersion] = await Promise.all([orUnknown(gateway()), orUnknown(postgres())]);
  return { machine: machine(), node: process.version, gateway: gatewayVersion, postgres: postgresVersion };
}

const unknown = 'unknown';

function machine(): string {
  const cores = cpus();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  return `${process.platform} ${process.arch}, ${cores.length} × ${cores[0]?.model.trim() ?? unknown}, ${memory}`;
}
