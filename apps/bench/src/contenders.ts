import { join } from 'node:path';
import { createMerchant as createCredentials } from '@order-gateway/postgres/accounts';
import { migrateDatabase } from '@order-gateway/postgres/migrate';
import manifest from '../../../package.json' with { type: 'json' };
import { connect } from './database.ts';
import { startServer } from './programs.ts';

const startArguments = manifest.scripts.start.split(' ').slice(1);
const gatewayProgram = join('../../..', startArguments.at(-1) ?? '');

/**
 * Returns the arguments of Node.js for a program. All programs run with the gateway's options, so that only the code
 * differs.
 */
function argumentsFor(path: string): string[] {
  const preload = ['--import', join(import.meta.dirname, 'measure/allocation.ts')];
  return [...startArguments.slice(0, -1), ...preload, join(import.meta.dirname, path)];
}

/** The server programs, each with the names of its contenders. */
const programs = [
  { args: argumentsFor(gatewayProgram), json: 'gateway-json', grpc: 'gateway-grpc' },
  { args: argumentsFor('servers/fastify.ts'), json: 'fastify' },
  { args: argumentsFor('servers/grpc-js.ts'), grpc: 'grpc-js' },
  { args: argumentsFor('servers/libraries-server.ts'), json: 'libraries-json', grpc: 'libraries-grpc' },
  { args: argumentsFor('servers/bare-server.ts'), json: 'bare-http', grpc: 'bare-http2' },
];

/** The values of `--only`. */
export const contenderNames = [...programs.flatMap(({ json, grpc }) => [json ?? [], grpc ?? []].flat()), 'pgbench'];

/** Returns the external program that sends the load of a contender, if there is one. */
export function programOf(name: string): string | undefined {
  return name === 'pgbench' ? name : programs.some(({ json }) => json === name) ? 'wrk' : undefined;
}

export interface Contender {
  readonly name: string;
  readonly protocol: 'json' | 'grpc' | 'insert' | 'pgbench';
  readonly databaseUrl: string;
  /** The merchant whose orders are sent. */
  readonly merchant: Awaited<ReturnType<typeof createMerchant>>;
  /** 0 for contenders without a server. */
  readonly port: number;
  /** The process of the server; 0 for contenders without a server. */
  readonly pid: number;
  /** The bytes that the server has allocated on V8's heap; NaN for contenders without a server. */
  readonly allocatedBytes: () => Promise<number>;
}

/** What a contender without a server has instead of one. */
export const noServer = { port: 0, pid: 0, allocatedBytes: async () => Number.NaN };

/**
 * Starts the programs of the named contenders on a database, with a new merchant. Creates the gateway's tables if they
 * are missing. `cleanup` stops the programs.
 */
export async function startContenders(
  cleanup: AsyncDisposableStack,
  databaseUrl: string,
  names: readonly string[],
): Promise<Contender[]> {
  const merchant = await createMerchant(databaseUrl);
  const contenders: Contender[] = [];
  for (const { args, json, grpc } of programs) {
    if (![json, grpc].some((name) => name !== undefined && names.includes(name))) continue;
    const { ready, ...server } = await startServer(cleanup, args, {
      PATH: process.env.PATH,
      DATABASE_URL: databaseUrl,
      NODE_ENV: 'production',
      HTTP_PORT: '0',
      ADMIN_PORT: '0',
      GRPC_PORT: '0',
      MERCHANT_ID: String(merchant.id),
      CLIENT_ID: merchant.clientId,
      CLIENT_SECRET: merchant.clientSecret,
    });
    const ports = { json: portIn(ready.http_url), grpc: portIn(ready.grpc_address) };
    for (const protocol of ['json', 'grpc'] as const) {
      const name = { json, grpc }[protocol];
      if (name !== undefined)
        contenders.push({ name, protocol, databaseUrl, merchant, port: ports[protocol], ...server });
    }
  }
  contenders.push({ name: 'pgbench', protocol: 'pgbench', databaseUrl, merchant, ...noServer });
  return contenders.filter(({ name }) => names.includes(name));
}

/** Creates the tables if they are missing, and a merchant. Returns the merchant's id and credentials. */
export async function createMerchant(databaseUrl: string) {
  await migrateDatabase(databaseUrl);
  const credentials = await createCredentials(databaseUrl, 'Bench');
  await using sql = connect(databaseUrl);
  const [row] = await sql`select id from accounts where client_id = ${credentials.clientId}`;
  return { id: Number(row?.id), ...credentials };
}

function portIn(address: unknown): number {
  return Number(/:(\d+)\/?$/.exec(String(address))?.[1]);
}
