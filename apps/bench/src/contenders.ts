import { join } from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { connect } from './database.ts';
import { run, startServer } from './programs.ts';

const repository = join(import.meta.dirname, '../../..');

/** The arguments that a script of the root's package.json gives to Node.js, with the program's full path. */
function argumentsOf(script: keyof typeof manifest.scripts): string[] {
  const args = manifest.scripts[script].split(' ').slice(1);
  return [...args.slice(0, -1), join(repository, args.at(-1) ?? '')];
}

/** The others run with the gateway's Node.js options: only the code differs. */
function ownProgram(path: string): string[] {
  return [...argumentsOf('start').slice(0, -1), join(import.meta.dirname, path)];
}

/** The programs, each with the contenders that it serves. */
const programs: readonly {
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  readonly json?: string;
  readonly grpc?: string;
}[] = [
  { args: argumentsOf('start'), json: 'gateway-json', grpc: 'gateway-grpc' },
  { args: ownProgram('peers/fastify.ts'), json: 'fastify' },
  { args: ownProgram('peers/fastify.ts'), env: { PREPARED: '1' }, json: 'fastify-prepared' },
  { args: ownProgram('peers/grpc-js.ts'), grpc: 'grpc-js' },
  { args: ownProgram('peers/grpc-js.ts'), env: { PREPARED: '1' }, grpc: 'grpc-js-prepared' },
  { args: ownProgram('libraries-server.ts'), json: 'libraries-json', grpc: 'libraries-grpc' },
  { args: ownProgram('bare-server.ts'), json: 'bare-http', grpc: 'bare-http2' },
];

/** What `--only` accepts. */
export const contenderNames = [...programs.flatMap(({ json, grpc }) => [json ?? [], grpc ?? []].flat()), 'pgbench'];

/** Whose orders are sent. */
export interface Merchant {
  readonly id: number;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** What is measured. */
export interface Contender {
  readonly name: string;
  readonly protocol: 'json' | 'grpc' | 'insert' | 'pgbench';
  readonly databaseUrl: string;
  readonly merchant: Merchant;
  /** 0 for those without a server. */
  readonly port: number;
  /** The server's program. */
  readonly pid: number;
}

/** Starts the programs of the named contenders on an empty database, which gets the gateway's tables. */
export async function startContenders(
  cleanup: AsyncDisposableStack,
  databaseUrl: string,
  names: readonly string[],
): Promise<Contender[]> {
  const merchant = await createMerchant(databaseUrl);
  const contenders: Contender[] = [];
  for (const { args, env, json, grpc } of programs) {
    if (![json, grpc].some((name) => name !== undefined && names.includes(name))) continue;
    const { pid, ready } = await startServer(cleanup, args, {
      ...environment(databaseUrl),
      ...{ NODE_ENV: 'production', HTTP_PORT: '0', ADMIN_PORT: '0', GRPC_PORT: '0' },
      ...{ MERCHANT_ID: String(merchant.id), CLIENT_ID: merchant.clientId, CLIENT_SECRET: merchant.clientSecret },
      ...env,
    });
    const ports = { json: portIn(ready.http_url), grpc: portIn(ready.grpc_address) };
    for (const protocol of ['json', 'grpc'] as const) {
      const name = { json, grpc }[protocol];
      if (name !== undefined) contenders.push({ name, protocol, databaseUrl, merchant, port: ports[protocol], pid });
    }
  }
  contenders.push({ name: 'pgbench', protocol: 'pgbench', databaseUrl, merchant, port: 0, pid: 0 });
  return contenders.filter(({ name }) => names.includes(name));
}

/** Creates a merchant with the gateway's command, which also creates the tables. */
export async function createMerchant(databaseUrl: string): Promise<Merchant> {
  const args = [...argumentsOf('merchant'), 'create', '--name', 'Bench', '--json'];
  const output = await run(process.execPath, args, { env: environment(databaseUrl), timeoutSeconds: 60 });
  const { client_id: clientId, client_secret: clientSecret } = JSON.parse(output);
  await using sql = connect(databaseUrl);
  const [row] = await sql`select id from merchants where client_id = ${clientId}`;
  return { id: Number(row?.id), clientId, clientSecret };
}

function environment(databaseUrl: string): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, DATABASE_URL: databaseUrl };
}

function portIn(address: unknown): number {
  return Number(/:(\d+)\/?$/.exec(String(address))?.[1]);
}
