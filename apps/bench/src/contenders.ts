import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Credentials } from '@gateway/domain/credentials';
import { createMerchant as createAccount } from '@gateway/postgres/merchant-admin';
import postgres from 'postgres';
import manifest from '../../../package.json' with { type: 'json' };
import { type RunningServer, startServer } from './programs.ts';

const repository = join(import.meta.dirname, '../../..');
export const peersFolder = join(import.meta.dirname, '../peers');

/** What `pnpm start` gives to Node.js: its options, and the program as seen from the checkout's root. */
const gatewayArguments = manifest.scripts.start.split(' ').slice(1);

/** What is measured against each other. `pgbench` needs no server but the database. */
export interface Contender {
  readonly name: string;
  readonly door: 'json' | 'grpc' | 'sql';
  readonly port: number;
  readonly credentials: Credentials;
  readonly merchantId: number;
  readonly pid: number;
}

export interface Merchant {
  readonly credentials: Credentials;
  readonly id: number;
}

const peers = [
  { name: 'Fastify + Drizzle', door: 'json', program: 'fastify', env: {} },
  { name: 'Fastify + Drizzle, prepared', door: 'json', program: 'fastify', env: { PREPARED: '1' } },
  { name: 'NestJS + TypeORM', door: 'json', program: 'nest', env: {} },
  { name: 'grpc-js + Drizzle', door: 'grpc', program: 'grpc-js', env: {} },
  { name: 'grpc-js + Drizzle, prepared', door: 'grpc', program: 'grpc-js', env: { PREPARED: '1' } },
  { name: 'NestJS gRPC + TypeORM', door: 'grpc', program: 'nest', env: { GRPC: '1' } },
] as const;

/** A merchant of its own, so that the rows of each contender can be counted. */
export async function createMerchant(databaseUrl: string, name: string): Promise<Merchant> {
  const credentials = await createAccount(databaseUrl, name);
  const sql = postgres(databaseUrl, { max: 1 });
  const [row] = await sql`select id from merchants where client_id = ${credentials.clientId}`;
  await sql.end();
  return { credentials, id: Number(row?.id) };
}

/** Starts the gateway of this checkout on the database. */
export async function startGateway(
  databaseUrl: string,
): Promise<{ server: RunningServer; http: number; grpc: number }> {
  const server = await startServer(gatewayArguments, {
    cwd: repository,
    env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl, HTTP_PORT: '0', GRPC_PORT: '0' },
  });
  const portOf = (address: unknown) => Number(String(address).split(':').at(-1));
  return { server, http: portOf(server.ready.http_url), grpc: portOf(server.ready.grpc_address) };
}

/** Starts the gateway and every peer, all on one database. */
export async function startContenders(databaseUrl: string, withPeers: boolean): Promise<Contender[]> {
  const ours = await createMerchant(databaseUrl, 'Gateway');
  const gateway = await startGateway(databaseUrl);
  const own = { credentials: ours.credentials, merchantId: ours.id, pid: gateway.server.pid };
  const contenders: Contender[] = [
    { name: 'Gateway, JSON', door: 'json', port: gateway.http, ...own },
    { name: 'Gateway, gRPC', door: 'grpc', port: gateway.grpc, ...own },
  ];
  for (const { name, door, program, env } of withPeers ? peers : []) {
    const merchant = await createMerchant(databaseUrl, name);
    const server = await startServer([`.build/${program}.js`], {
      cwd: peersFolder,
      env: {
        ...{ PATH: process.env.PATH, NODE_ENV: 'production', DATABASE_URL: databaseUrl, ...env },
        ...{ CLIENT_ID: merchant.credentials.clientId, CLIENT_SECRET: merchant.credentials.clientSecret },
        ...{ MERCHANT_ID: String(merchant.id), PROTO_DIR: join(repository, 'proto'), PORT: String(await freePort()) },
      },
    });
    contenders.push({
      ...{ name, door, port: Number(server.ready.port), pid: server.pid },
      ...{ credentials: merchant.credentials, merchantId: merchant.id },
    });
  }
  return contenders;
}

/** Starts both doors of a server that does nothing but insert: what Node.js itself takes. */
export async function startBareServer(databaseUrl: string, firstId: number): Promise<Contender[]> {
  const { id: merchantId, credentials } = await createMerchant(databaseUrl, 'bare');
  const { pid, ready } = await startServer(['apps/bench/src/bare-server.ts'], {
    cwd: repository,
    env: {
      ...{ PATH: process.env.PATH, DATABASE_URL: databaseUrl },
      ...{ MERCHANT_ID: String(merchantId), FIRST_ID: String(firstId) },
    },
  });
  return [
    { name: 'bare node:http', door: 'json', port: Number(ready.http), credentials, merchantId, pid },
    { name: 'bare node:http2', door: 'grpc', port: Number(ready.http2), credentials, merchantId, pid },
  ];
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
