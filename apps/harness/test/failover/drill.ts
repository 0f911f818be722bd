import { setTimeout as sleep } from 'node:timers/promises';
import { migrateDatabase } from '@gateway/postgres/migrate';
import { Command, Option } from 'commander';
import { auditErrors, auditJournal } from '../../src/audit/audit.ts';
import { exitCodes, onEndSignal, parseNumber, runCommand } from '../../src/command/command.ts';
import { startOwnGateway } from '../../src/gateway/own-gateway.ts';
import { constantRate } from '../../src/load/arrivals.ts';
import { parseProfile } from '../../src/load/profile.ts';
import { startWatchedLoad } from '../watched-load.ts';
import { startPatroni } from './patroni.ts';
import {
  type Fault,
  faults,
  openFolder,
  type SetUp,
  startBehindHaproxy,
  startBehindPgbouncer,
  startDirect,
} from './set-ups.ts';

const setUps: Readonly<Record<string, (cleanup: AsyncDisposableStack) => Promise<SetUp>>> = {
  direct: startDirect,
  haproxy: startBehindHaproxy,
  pgbouncer: startBehindPgbouncer,
  patroni: startPatroni,
};

/** The first order after a failover is later than this: the round fails. */
const firstOrderWithinMs = 3_000;

/** Load before the fault, and after the first order. */
const [beforeMs, afterMs] = [2_000, 3_000];

/** As many calls as are due while a server hangs may be pending; the load ends with the round. */
const profile = parseProfile({
  ...{ merchants: 2, protocol: 'mixed', replay_share: 0.1 },
  ...{ phases: constantRate(200, 300), connections: 8, max_pending: 4_000 },
});

const interrupted = new AbortController();
onEndSignal(() => interrupted.abort());

interface Flags {
  readonly setUp: string;
  readonly fault?: Fault;
  readonly rounds: number;
}

const command = new Command('pnpm drill')
  .description('Fails two gateways over from a primary to its standby under load, and audits what was acknowledged.')
  .addOption(
    new Option('--set-up <name>', 'what stands in front of the servers').choices(Object.keys(setUps)).default('direct'),
  )
  .addOption(new Option('--fault <name>', 'what happens to the primary; all of them by default').choices(faults))
  .option('--rounds <number>', 'how often each', parseNumber, 1);

await runCommand(command, async () => {
  const { setUp, fault, rounds } = command.opts<Flags>();
  let passed = true;
  for (const one of fault === undefined ? faults : [fault]) {
    for (let round = 1; round <= rounds && !interrupted.signal.aborted; round += 1) {
      passed = (await runRound(setUp, one, round)) && passed;
    }
  }
  if (interrupted.signal.aborted) return exitCodes.interrupted;
  return passed ? exitCodes.passed : exitCodes.failed;
});

/** Starts everything anew, fails over once, and prints a line. */
async function runRound(name: string, fault: Fault, round: number): Promise<boolean> {
  await using cleanup = new AsyncDisposableStack();
  const setUp = await (setUps[name] ?? startDirect)(cleanup);
  await migrateDatabase(setUp.primaryUrl);
  const database = async () => ({ url: setUp.primaryUrl, gatewayUrl: setUp.databaseUrl, stop: async () => {} });
  const first = await startOwnGateway([{ name: 'First' }, { name: 'Second' }], interrupted.signal, database);
  cleanup.defer(first.stop);
  const gateways = [first, await first.startAnother()];
  const { credentials } = first;
  const load = startWatchedLoad(gateways, { profile, seed: round, credentials, folder: await openFolder(cleanup) });
  cleanup.defer(load.end);
  await sleep(beforeMs, undefined, interrupted);
  await setUp.failOver(fault);
  const limit = AbortSignal.any([interrupted.signal, AbortSignal.timeout(60_000)]);
  const firstOrderMs = await load.timeToCreated('some', limit).catch(() => undefined);
  await sleep(afterMs, undefined, interrupted);
  load.end();
  const { recorder } = await load.running;
  const audit = await auditJournal(load.journalFile, setUp.standbyUrl);
  const wrong = [...recorder.outcomes].filter(([, { wrong }]) => wrong > 0);
  const facts = {
    ...{ set_up: name, fault, round },
    first_order_ms: firstOrderMs === undefined ? null : Math.round(firstOrderMs),
    ...{ acknowledged: audit.acknowledged, lost: audit.lost, doubled: audit.duplicated, changed: audit.changed },
    errors: Object.fromEntries(wrong.map(([outcome, { count }]) => [outcome, count])),
  };
  process.stdout.write(`${JSON.stringify(facts)}\n`);
  return auditErrors(audit) === 0 && firstOrderMs !== undefined && firstOrderMs <= firstOrderWithinMs;
}
