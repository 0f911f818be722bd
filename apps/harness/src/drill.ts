import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createCommand } from '@order-gateway/command';
import { migrateDatabase } from '@order-gateway/postgres/migrate';
import { Option } from 'commander';
import { auditErrors, auditJournal } from './audit/audit.ts';
import { exitCodes, onEndSignal, parseWhole, runCommand } from './command/command.ts';
import { startPatroni } from './failover/patroni.ts';
import {
  createReadableFolder,
  type Fault,
  faults,
  startBehindHaproxy,
  startBehindPgbouncer,
  startDirect,
  type Topology,
} from './failover/topologies.ts';
import { startOwnGateway } from './gateway/own-gateway.ts';
import { constantRate, parseProfile } from './load/profile/profile.ts';
import { startWatchedLoad } from './load/run/watched-load.ts';
import { seededAt } from './workload/seeded.ts';

const topologies: Readonly<Record<string, (cleanup: AsyncDisposableStack) => Promise<Topology>>> = {
  direct: startDirect,
  haproxy: startBehindHaproxy,
  pgbouncer: startBehindPgbouncer,
  patroni: startPatroni,
};

/** A round fails if no order is created within this time after the promotion. */
const firstOrderWithinMs = 3_000;

/** The duration of the load before the fault and after the first order. */
const [beforeMs, afterMs] = [2_000, 3_000];

/**
 * The limits of the random time between the fault and the promotion. Gateways may notice the fault before or after the
 * promotion.
 */
const promotedAfterMs = { min: 500, max: 5_000 };

/**
 * `max_pending` allows for every call that is scheduled while a server hangs. The load runs until the round ends it.
 */
const profile = parseProfile({
  merchants: 2,
  protocol: 'mixed',
  replay_share: 0.1,
  phases: constantRate(200, 300),
  connections: 8,
  max_pending: 4_000,
});

const interrupted = new AbortController();
onEndSignal(() => interrupted.abort());

interface Flags {
  readonly topology: string;
  readonly fault?: Fault;
  readonly rounds: number;
  readonly seed?: number;
}

const command = createCommand(
  'drill',
  'Fails over from a primary to its standby under the load of two gateways, over TLS, and audits the acknowledged orders.',
)
  .addOption(
    new Option('--topology <name>', 'how the gateways find the primary')
      .choices(Object.keys(topologies))
      .default('direct'),
  )
  .addOption(new Option('--fault <name>', 'the fault of the primary; all of them by default').choices(faults))
  .option('--rounds <number>', 'the number of rounds for each fault', parseWhole, 1)
  .option('--seed <n>', 'repeat the calls and delays of the run that reported this seed (default: random)', parseWhole)
  .addHelpText(
    'after',
    `
Programs: PostgreSQL with pg_basebackup, and openssl; for some topologies also
haproxy, pgbouncer or patroni. docs/failover.md has the details.
Exit codes: 0 no order was lost and each failover was quick enough; 1 otherwise,
or after a failure; 2 an argument is invalid; 130 interrupted.`,
  );

await runCommand(command, drill, interrupted.signal);

async function drill(): Promise<number> {
  const { topology, fault, rounds, seed: firstSeed = randomInt(2 ** 32) } = command.opts<Flags>();
  let passed = true;
  let seed = firstSeed;
  for (const chosenFault of fault === undefined ? faults : [fault]) {
    for (let round = 1; round <= rounds && !interrupted.signal.aborted; round += 1) {
      passed = (await runRound(topology, chosenFault, round, seed)) && passed;
      seed += 1;
    }
  }
  if (interrupted.signal.aborted) return exitCodes.interrupted;
  return passed ? exitCodes.passed : exitCodes.failed;
}

/** Starts servers and gateways, fails over once, and prints a line. Returns whether the round passed. */
async function runRound(name: string, fault: Fault, round: number, seed: number): Promise<boolean> {
  await using cleanup = new AsyncDisposableStack();
  const topology = await (topologies[name] ?? startDirect)(cleanup);
  await migrateDatabase(topology.primaryUrl);
  const database = async () => ({ url: topology.primaryUrl, gatewayUrl: topology.databaseUrl, stop: async () => {} });
  const first = await startOwnGateway([{ name: 'First' }, { name: 'Second' }], interrupted.signal, database);
  cleanup.defer(first.stop);
  const gateways = [first, await first.startAnother()];
  const { credentials } = first;
  const load = startWatchedLoad(gateways, { profile, seed, credentials, folder: await createReadableFolder(cleanup) });
  cleanup.defer(load.end);
  await sleep(beforeMs, undefined, interrupted);
  const { min, max } = promotedAfterMs;
  await topology.failOver(fault, min + seededAt(seed, 0).below(max - min));
  const limit = AbortSignal.any([interrupted.signal, AbortSignal.timeout(60_000)]);
  const firstOrderMs = await load.timeToCreated('some', limit).catch(() => undefined);
  await sleep(afterMs, undefined, interrupted);
  load.end();
  const { recorder } = await load.running;
  const audit = await auditJournal(load.journalFile, topology.standbyUrl);
  const wrong = [...recorder.outcomes].filter(([, { wrong }]) => wrong > 0);
  const fields = {
    topology: name,
    fault,
    round,
    seed,
    first_order_ms: firstOrderMs === undefined ? null : Math.round(firstOrderMs),
    acknowledged: audit.acknowledged,
    lost: audit.lost,
    duplicated: audit.duplicated,
    changed: audit.changed,
    unexplained: audit.unexplained,
    errors: Object.fromEntries(wrong.map(([outcome, { count }]) => [outcome, count])),
  };
  process.stdout.write(`${JSON.stringify(fields)}\n`);
  return auditErrors(audit) === 0 && firstOrderMs !== undefined && firstOrderMs <= firstOrderWithinMs;
}
