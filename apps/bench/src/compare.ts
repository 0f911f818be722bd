import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import type { Ground } from './bench.ts';
import { type Contender, createMerchant, peersFolder, startBareServer, startContenders } from './contenders.ts';
import { type LoadOptions, median } from './load.ts';
import { runLoneInserts } from './lone-insert.ts';
import type { BenchOptions } from './options.ts';
import { isInstalled, runProgram } from './programs.ts';
import { chartOf, type Report, tableOf } from './report.ts';
import { runRounds, type Standing } from './rounds.ts';
import {
  runPgbench,
  runSteadyPgbench,
  sendGrpc,
  sendJsonByAutocannon,
  sendJsonByWrk,
  sendReplaysByH2load,
} from './senders.ts';
import { stored } from './stored.ts';

/** Calls under way at every door but pgbench's, which has 32 clients. */
const concurrency = 64;
const warmUpSeconds = 3;
/** Short ones, and three for each of the others: a ratio wants both of the same moment, and the disk is faster and slower by it. */
const loneSeconds = 1;
const loneRoundsEach = 3;
const loneFirstId = 2 ** 50;
const loneInsert = 'a prepared insert by the driver';
/** More than one caller alone can make in a round. */
const loneOrdersMax = 1_000_000;
/** Beyond the ids of the lone inserts. */
const bareFirstId = 2 ** 51;
const senderCheckSeconds = 3;
const senderCheckRounds = 3;

/** Measures the gateway, its peers and pgbench side by side, and prints the table. */
export async function compare(ground: Ground, options: BenchOptions): Promise<Report> {
  if (options.peers) await installPeers(ground);
  const hasWrk = await isInstalled('wrk');
  const sendJson = hasWrk ? sendJsonByWrk : sendJsonByAutocannon;
  const contenders = await startContenders(ground.databaseUrl, options.peers);
  if (await isInstalled('pgbench')) contenders.push(await writerOn(ground.databaseUrl, 'pgbench'));
  const sql = postgres(ground.databaseUrl, { max: 1 });
  const run = async (contender: Contender, name: string, seconds: number, calls = concurrency) => {
    if (contender.door === 'sql') return runPgbench(ground.databaseUrl, contender, seconds);
    const load: LoadOptions = {
      ...{ port: contender.port, credentials: contender.credentials },
      ...{ concurrency: calls, seconds, run: `${name}-${contender.merchantId}` },
    };
    return stored(sql, contender.merchantId, () => (contender.door === 'json' ? sendJson(load) : sendGrpc(load)));
  };
  for (const contender of contenders) await run(contender, 'warm', warmUpSeconds);
  const standings = await runRounds(contenders, options.rounds, (contender, round) => {
    ground.say(`round ${round + 1} of ${options.rounds}: ${contender.name}`);
    return run(contender, `round${round}`, options.seconds);
  });
  const commit = await writerOn(ground.databaseUrl, loneInsert);
  const bare = await startBareServer(ground.databaseUrl, bareFirstId);
  for (const contender of bare) await run(contender, 'warm', warmUpSeconds);
  const lone = await runRounds(
    [...contenders.filter(({ name }) => name.startsWith('Gateway')), ...bare, commit],
    options.rounds * loneRoundsEach,
    (contender, round) => {
      if (contender !== commit) return run(contender, `lone${round}`, loneSeconds, 1);
      const { databaseUrl } = ground;
      const firstId = loneFirstId + round * loneOrdersMax;
      return runLoneInserts({ databaseUrl, merchantId: commit.merchantId, seconds: loneSeconds, firstId });
    },
  );
  const facts = {
    ...loneFacts(lone),
    ...(await steadyFacts(ground, contenders, standings, options)),
    ...(await senderFacts(ground, contenders)),
  };
  await sql.end();
  const senders = [hasWrk ? 'wrk' : 'autocannon', 'the sender in apps/bench/src/grpc-sender.ts'];
  const { rounds, seconds } = options;
  const report: Report = { date: ground.date, machine: ground.machine, senders, rounds, seconds, standings, facts };
  ground.say(`\nJSON by ${senders[0]}, gRPC by ${senders[1]}\n\n${tableOf(report)}\n`);
  for (const [fact, figure] of Object.entries(facts)) ground.say(`${fact}: ${figure.toFixed(2)}`);
  if (options.chart !== undefined) await writeFile(options.chart, chartOf(report));
  return report;
}

/** A contender without a server: it writes to the database itself. */
async function writerOn(databaseUrl: string, name: string): Promise<Contender> {
  const { id, credentials } = await createMerchant(databaseUrl, name);
  return { name, door: 'sql', port: 0, credentials, merchantId: id, pid: 0 };
}

function loneFacts(lone: readonly Standing[]): Record<string, number> {
  const insertMs = lone.find(({ name }) => name === loneInsert)?.p50Ms ?? Number.NaN;
  const facts: Record<string, number> = {};
  for (const { name, p50Ms } of lone) {
    facts[`one caller alone, ${name}, median ms`] = p50Ms;
    if (name !== loneInsert) facts[`one caller alone, ${name}, x the insert`] = p50Ms / insertMs;
  }
  return facts;
}

const steadyNames = ['Gateway, gRPC', 'grpc-js + Drizzle, prepared', 'pgbench'];

/**
 * The tail at half of the gateway's own peak, beside the peer that does one insert a call and pgbench, which tells how steady
 * the database and the machine are by themselves, all at the same rate.
 */
async function steadyFacts(
  { databaseUrl, folder }: Ground,
  contenders: readonly Contender[],
  standings: readonly Standing[],
  { rounds, seconds }: BenchOptions,
): Promise<Record<string, number>> {
  const peak = standings.find(({ name }) => name === 'Gateway, gRPC')?.ordersPerSecond ?? 0;
  const rate = Math.round(peak / 2);
  const steady = await runRounds(
    contenders.filter(({ name }) => steadyNames.includes(name)),
    rounds,
    (contender, round) => {
      const { door, port, credentials, merchantId } = contender;
      if (door === 'sql') return runSteadyPgbench(databaseUrl, contender, { rate, seconds, folder });
      return sendGrpc({ port, credentials, concurrency, seconds, run: `steady${round}-${merchantId}`, rate });
    },
  );
  return Object.fromEntries(
    steady.flatMap(({ name, p99Ms, failed }) => [
      [`at half of the gateway's gRPC peak, ${name}, p99 ms`, p99Ms],
      [`at half of the gateway's gRPC peak, ${name}, failed`, failed],
    ]),
  );
}

/** Whether the sender is what is measured: on replays, which h2load can send too, it must not be slower than h2load. */
async function senderFacts(ground: Ground, contenders: readonly Contender[]): Promise<Record<string, number>> {
  const gateway = contenders.find(({ name }) => name === 'Gateway, gRPC');
  if (gateway === undefined || !(await isInstalled('h2load'))) return {};
  const load = {
    ...{ port: gateway.port, credentials: gateway.credentials, concurrency },
    seconds: senderCheckSeconds,
    run: 'replay',
  };
  const byH2load: number[] = [];
  const byOwn: number[] = [];
  for (let round = 0; round < senderCheckRounds; round += 1) {
    byH2load.push(await sendReplaysByH2load(load, ground.folder));
    const { answers, durationMs } = await sendGrpc({ ...load, replays: true });
    byOwn.push((answers / durationMs) * 1_000);
  }
  return { 'replays by the own sender, x h2load': median(byOwn) / median(byH2load) };
}

/** The peers have a lockfile of their own, and are built once they are there. */
async function installPeers(ground: Ground): Promise<void> {
  ground.say('installing the peers');
  // pnpm itself where it runs this script (a binary of its own since version 12), else by way of npm.
  const [file = 'npx', ...before] = process.env.npm_execpath?.includes('pnpm')
    ? [process.env.npm_execpath]
    : ['npx', '--yes', 'pnpm@12.21.0'];
  const env = { ...process.env, CI: '1' };
  await runProgram(file, [...before, 'install', '--frozen-lockfile'], { cwd: peersFolder, env });
  await runProgram(process.execPath, [join(peersFolder, 'node_modules/typescript/bin/tsc'), '-p', '.'], {
    cwd: peersFolder,
  });
}
