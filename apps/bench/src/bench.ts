import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startTestServer } from '@gateway/dev-postgres/testing';
import { migrateDatabase } from '@gateway/postgres/migrate';
import connect from 'postgres';
import { compare } from './compare.ts';
import { growth } from './growth.ts';
import { type BenchOptions, benchUsage, readOptions } from './options.ts';
import { isInstalled, stopServers } from './programs.ts';

/** What every measurement runs on: a PostgreSQL of its own with the real one's settings, and a folder that is removed. */
export interface Ground {
  readonly databaseUrl: string;
  /** Makes another database with its tables. */
  readonly createDatabase: () => Promise<string>;
  readonly folder: string;
  readonly date: string;
  readonly machine: string;
  readonly say: (line: string) => void;
}

/** Enough for a whole comparison. */
const logFiles = 190;

async function bench(options: BenchOptions): Promise<void> {
  if (options.command === 'compare' && !options.peers && !(await isInstalled('wrk'))) {
    throw new Error(
      '--no-peers needs wrk: autocannon, which sends the JSON load without it, is installed with the peers',
    );
  }
  for (const file of [options.json, options.chart]) {
    if (file !== undefined) await mkdir(dirname(file), { recursive: true });
  }
  const folder = await mkdtemp(join(tmpdir(), 'bench-'));
  const postgres = await startTestServer();
  try {
    await migrateDatabase(postgres.url);
    await prepareLog(postgres.url);
    const ground: Ground = {
      databaseUrl: postgres.url,
      async createDatabase() {
        const { url } = await postgres.createDatabase();
        await migrateDatabase(url);
        return url;
      },
      folder,
      date: new Date().toISOString().slice(0, 10),
      machine: `${cpus().length} x ${cpus()[0]?.model.trim() || 'CPU'}, Node.js ${process.version}`,
      say: (line) => process.stdout.write(`${line}\n`),
    };
    const figures = options.command === 'growth' ? await growth(ground, options) : await compare(ground, options);
    if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(figures, undefined, 2)}\n`);
  } finally {
    await stopServers();
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Brings the write-ahead log to where it is on a server that has run for long: its files are there to be used again. A new
 * cluster makes one of 16 MB after the other instead, and all commits wait about 40 ms for each.
 */
async function prepareLog(url: string): Promise<void> {
  const sql = connect(url, { max: 1, onnotice: () => {} });
  await sql`alter system set min_wal_size = '3GB'`;
  await sql`select pg_reload_conf()`;
  for (let file = 0; file < logFiles; file += 1) {
    await sql`select pg_logical_emit_message(true, 'bench', 'a file needs an entry to be switched from')`;
    await sql`select pg_switch_wal()`;
  }
  // Files are freed for use up to the checkpoint before the last.
  await sql`checkpoint`;
  await sql`checkpoint`;
  await sql.end();
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // Servers go with this process; PostgreSQL and its folder go at its exit.
  process.once(signal, () => void stopServers().finally(() => process.exit(1)));
}

try {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) process.stdout.write(benchUsage);
  else await bench(readOptions(args));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
