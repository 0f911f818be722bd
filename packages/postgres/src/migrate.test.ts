import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startThrowawayPostgres, type ThrowawayPostgres } from '../testing/throwaway-postgres.ts';
import { migrateDatabase } from './migrate.ts';

const packageFolder = join(import.meta.dirname, '..');

let server: ThrowawayPostgres;
beforeAll(async () => {
  server = await startThrowawayPostgres();
});
afterAll(() => server?.stop());

test('processes that start at the same time migrate an empty database once', async () => {
  const url = await server.createDatabase();
  await Promise.all([migrateDatabase(url), migrateDatabase(url), migrateDatabase(url)]);
  const sql = postgres(url, { max: 1 });
  const tables = await sql`select table_name as name from information_schema.tables where table_schema = 'public'`;
  expect(tables.map(({ name }) => name).sort()).toEqual(['client_secrets', 'merchants', 'orders']);
  await sql.end({ timeout: 1 });
});

test('the committed migrations lead to the schema in the code', async () => {
  // The tool takes only folders below its own working directory.
  const out = await mkdtemp(join(packageFolder, 'node_modules', 'migrations-'));
  try {
    await cp(join(packageFolder, 'migrations'), out, { recursive: true });
    const before = await readdir(out);
    const args = [
      'generate',
      '--dialect',
      'postgresql',
      '--schema',
      'src/schema.ts',
      '--out',
      `node_modules/${out.split('/').at(-1)}`,
    ];
    await promisify(execFile)(join(packageFolder, 'node_modules/.bin/drizzle-kit'), args, {
      cwd: packageFolder,
      timeout: 60_000,
    });
    expect(await readdir(out)).toEqual(before);
  } finally {
    await rm(out, { recursive: true });
  }
}, 60_000);
