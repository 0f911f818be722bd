import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { createCommand } from '@order-gateway/command';
import { missingCitus, pgConfig, startCitusCluster } from '@order-gateway/dev-postgres/testing/citus';
import { migrateDatabase } from '@order-gateway/postgres/migrate';
import { distribute } from '@order-gateway/postgres/testing/distributed-database';
import { exitCodes, onEndSignal, parseWhole, runCommand, UsageError } from './command/command.ts';

interface Flags {
  readonly source?: string;
  readonly workers: number;
  readonly port?: number;
  readonly distribute?: true;
}

const command = createCommand(
  'citus',
  'Runs a Citus cluster for development on this machine until Ctrl-C, which removes it with its data.',
)
  .option('--source <folder>', 'the source of Citus, to build and install if it is not installed')
  .option('--workers <n>', 'the number of workers', parseWhole, 2)
  .option('--port <n>', 'the port of the coordinator; those of the workers follow (default: free ports)', parseWhole)
  .option('--distribute', 'migrate the database, and distribute it with packages/postgres/distribute.sql')
  .addHelpText(
    'after',
    `
Environment: PG_CONFIG, the pg_config of the PostgreSQL for which Citus is built
(default: the one in the PATH). packages/dev-postgres/README.md lists the
programs that a build needs.
Exit codes: 0 after Ctrl-C; 1 failure; 2 Citus is not installed, or an
argument is invalid.`,
  );

const ended = Promise.withResolvers<void>();
onEndSignal(ended.resolve);

await runCommand(command, async () => {
  const { source, distribute: isDistributed, ...options } = command.opts<Flags>();
  if (missingCitus() !== undefined && source !== undefined) await build(resolve(source));
  const missing = missingCitus();
  if (missing !== undefined) throw new UsageError(`${missing}: give the source of Citus with --source`);
  const cluster = await startCitusCluster(options);
  try {
    if (isDistributed) {
      await migrateDatabase(cluster.url);
      await distribute(cluster.url);
    }
    const ports = cluster.workers.map(({ port }) => port).join(', ');
    process.stderr.write(`Citus runs until Ctrl-C. Its workers have the ports ${ports}.\n`);
    process.stdout.write(`DATABASE_URL=${cluster.url}\n`);
    await ended.promise;
    return exitCodes.passed;
  } finally {
    await cluster.close();
  }
});

/** Builds and installs Citus, and shows the output of its build. */
async function build(folder: string): Promise<void> {
  const script = `./configure && make -j${availableParallelism()} && make install`;
  const env = { ...process.env, PG_CONFIG: pgConfig };
  const building = spawn('sh', ['-c', script], { cwd: folder, env, stdio: ['ignore', process.stderr, 'inherit'] });
  const [code] = await once(building, 'exit');
  if (code !== 0) throw new UsageError('Citus could not be built: packages/dev-postgres/README.md lists what it needs');
}
