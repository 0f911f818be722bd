import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrateDatabase } from '@gateway/postgres/migrate';
import { startThrowawayPostgres } from '@gateway/postgres/testing/throwaway-postgres';
import { compare } from './compare.ts';
import { growth } from './growth.ts';
import { type BenchOptions, readOptions } from './options.ts';
import { stopServers } from './programs.ts';

/** What every measurement runs on: a PostgreSQL of its own with the real one's settings, and a folder that is removed. */
export interface Ground {
  readonly databaseUrl: string;
  readonly folder: string;
  readonly date: string;
  readonly machine: string;
  readonly say: (line: string) => void;
}

async function bench(options: BenchOptions): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-'));
  const postgres = await startThrowawayPostgres();
  try {
    await migrateDatabase(postgres.url);
    const ground: Ground = {
      databaseUrl: postgres.url,
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

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // Servers go with this process; PostgreSQL and its folder go at its exit.
  process.once(signal, () => void stopServers().finally(() => process.exit(1)));
}

try {
  await bench(readOptions(process.argv.slice(2)));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
