import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createMerchant } from '@gateway/postgres/merchant-admin';
import { migrateDatabase } from '@gateway/postgres/migrate';
import { Command, Option } from 'commander';
import { auditErrors, auditJournal } from './audit/audit.ts';
import { exitCodes, parseNumber, runCommand } from './command/command.ts';
import { auditStream, startOrderStream } from './failover/order-stream.ts';
import { startPatroni } from './failover/patroni.ts';
import {
  type Fault,
  faults,
  type SetUp,
  startBehindHaproxy,
  startBehindPgbouncer,
  startDirect,
} from './failover/set-ups.ts';
import { startGatewayProcess } from './gateway/gateway-process.ts';
import { constantRate } from './load/arrivals.ts';
import { openSender } from './load/open-sender.ts';
import { parseProfile } from './load/profile.ts';
import { runLoad } from './load/run-load.ts';

const setUps: Readonly<Record<string, () => Promise<SetUp>>> = {
  direct: startDirect,
  haproxy: startBehindHaproxy,
  pgbouncer: startBehindPgbouncer,
  patroni: startPatroni,
};

/** The first order after a failover is later than this: the round fails. */
const firstOrderWithinMs = 3_000;

/** Load before the fault, and after the first order. */
const [beforeMs, afterMs] = [2_000, 3_000];

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interrupted.abort());

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
  const cleanUps: (() => Promise<unknown>)[] = [];
  try {
    const setUp = await (setUps[name] ?? startDirect)();
    cleanUps.push(setUp.close);
    await migrateDatabase(setUp.primaryUrl);
    const merchants = [
      await createMerchant(setUp.primaryUrl, 'First'),
      await createMerchant(setUp.primaryUrl, 'Second'),
    ];
    const settings = { databaseUrl: setUp.databaseUrl, secretsKey: randomBytes(32).toString('base64') };
    const gateways = [];
    for (const _ of [1, 2]) {
      const gateway = await startGatewayProcess(settings, interrupted.signal);
      cleanUps.push(gateway.stop);
      gateways.push(gateway);
    }
    const [gateway] = gateways;
    if (gateway === undefined) throw new Error('no gateway');
    const folder = await mkdtemp(join(tmpdir(), 'failover-journal-'));
    cleanUps.push(() => rm(folder, { recursive: true }));
    const stream = startOrderStream(
      gateways.map(({ httpUrl }) => httpUrl),
      merchants,
    );
    cleanUps.push(stream.stop);
    const journalFile = join(folder, 'journal.ndjson');
    const enough = new AbortController();
    const profile = {
      merchants: 2,
      protocol: 'mixed',
      phases: constantRate(50, 300),
      connections: 4,
      max_pending: 4_000,
    };
    const loading = runLoad(
      {
        settings: { ...parseProfile({ ...profile, replay_share: 0.1 }), profile: 'none', seed: round },
        ...{
          sender: openSender(gateway, profile.connections),
          credentials: merchants,
          journalFile,
          progress: { write: () => true },
        },
      },
      enough.signal,
    );
    // Reported when it is awaited; until then what was started has to be stopped.
    loading.catch(() => {});
    await sleep(beforeMs, undefined, interrupted);
    await setUp.failOver(fault);
    const firstOrderMs = await Promise.race([stream.timeToNextOrder(), sleep(60_000, undefined, { ref: false })]);
    await sleep(afterMs, undefined, interrupted);
    enough.abort();
    await Promise.all([loading, stream.stop()]);
    const [audit, streamed] = [
      await auditJournal(journalFile, setUp.standbyUrl),
      await auditStream(stream, setUp.standbyUrl),
    ];
    const facts = {
      ...{ set_up: name, fault, round },
      first_order_ms: firstOrderMs === undefined ? null : Math.round(firstOrderMs),
      acknowledged: audit.acknowledged + streamed.acknowledged,
      lost: audit.lost + streamed.lost,
      doubled: audit.duplicated + streamed.doubled,
      changed: audit.changed,
      errors: stream.errors,
    };
    process.stdout.write(`${JSON.stringify(facts)}\n`);
    const isClean = auditErrors(audit) + streamed.lost + streamed.doubled === 0;
    return isClean && firstOrderMs !== undefined && firstOrderMs <= firstOrderWithinMs;
  } finally {
    for (const one of cleanUps.toReversed()) await one();
  }
}
