import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTestServer, type TestServer } from '@gateway/dev-postgres/testing';
import { seededAt } from '@gateway/fixtures/seeded';
import postgres from 'postgres';
import { onTestFinished } from 'vitest';
import { type AuditResult, auditWhenDelivered } from '../src/audit/audit.ts';
import { type JournalEntry, readJournal } from '../src/audit/journal.ts';
import { type OwnGateway, startOwnGateway } from '../src/gateway/own-gateway.ts';
import { constantRate } from '../src/load/arrivals.ts';
import { loadProfile } from '../src/load/profile.ts';
import type { Recorder } from '../src/load/recorder.ts';
import { runLoad } from '../src/load/run-load.ts';
import { startWebhookReceiver } from '../src/webhooks/receiver.ts';
import { acknowledgedIn } from './journaled-run.ts';

/** How much of a run there is, and how often it is disturbed. */
export interface Crashes {
  readonly seed: number;
  readonly rate: number;
  /** The run ends when so many orders are acknowledged as created, so many as changed, and all kills are done. */
  readonly orders: number;
  readonly changes: number;
  readonly gatewayKills: number;
  readonly postgresKills: number;
  /** Between two kills so many orders are shown in responses. */
  readonly shownBetweenKills: number;
}

/** What became of it. */
export interface CrashOutcome {
  readonly recorder: Recorder;
  readonly audit: AuditResult;
}

/** The run is ended by its kills and orders, not by its time. */
const longestSeconds = 3_600;

/** So few that a slow machine drops calls rather than sends payments before the responses with their tokens. */
const pendingMax = 64;

const merchants = [
  ...[{ name: 'First' }, { name: 'Second' }, { name: 'Third' }],
  // Their orders expire while others are paid and cancelled.
  ...[
    { name: 'Fourth', defaultLifetimeSeconds: 1 },
    { name: 'Fifth', defaultLifetimeSeconds: 5 },
  ],
];

/**
 * Sends the profile `lifecycle` to a gateway and a PostgreSQL of their own, kills both with SIGKILL again and again meanwhile, and
 * audits orders, states, events and webhooks. Everything ends with the test.
 */
export async function crashLifecycle(crashes: Crashes): Promise<CrashOutcome> {
  const { seed, rate, orders, changes, shownBetweenKills } = crashes;
  const folder = mkdtempSync(join(tmpdir(), 'lifecycle-'));
  const server = await startTestServer();
  const stopping = new AbortController();
  onTestFinished(async () => {
    await stop();
    rmSync(folder, { recursive: true });
  }, 60_000);
  const ended = new AbortController();
  const receiver = await startWebhookReceiver();
  let gateway: OwnGateway | undefined;
  const stop = async () => {
    stopping.abort();
    ended.abort();
    await gateway?.stop();
    await receiver.close();
  };
  const setups = [...merchants, { name: 'Checkout', kind: 'checkout' as const }];
  gateway = await startOwnGateway(setups, stopping.signal, async () => server);
  await gateway.sendWebhooks(merchants.length, receiver);
  const [credentials, checkout] = [gateway.credentials.slice(0, merchants.length), gateway.credentials.at(-1)];

  const journalFile = join(folder, 'journal.ndjson');
  const profile = { ...loadProfile('lifecycle'), merchants: merchants.length, max_pending: pendingMax };
  const settings = { ...profile, phases: constantRate(rate, longestSeconds), profile: 'lifecycle', seed };
  const progress = { write: () => true };
  const running = runLoad({ settings, target: gateway, credentials, checkout, journalFile, progress }, ended.signal);

  const kills = shuffled(seed, [
    ...Array.from({ length: crashes.gatewayKills }, () => gateway.crash),
    ...Array.from({ length: crashes.postgresKills }, () => () => killPostgres(server)),
  ]);
  const disturb = async () => {
    for (const kill of kills) {
      await shownMore(journalFile, shownBetweenKills, ended.signal);
      await kill();
    }
    for (;;) {
      const shown = await shownIn(journalFile);
      if (shown.created >= orders && shown.changed >= changes) return;
      await sleep(500, undefined, { signal: ended.signal });
    }
  };
  const endsEarly = running.then(({ failure }) => Promise.reject(new Error(`the run ended early: ${failure}`)));
  await Promise.race([disturb(), endsEarly, gateway.exited]);
  // It ends now because it is aborted.
  endsEarly.catch(() => {});
  ended.abort();
  const { recorder } = await running;
  return { recorder, audit: await auditWhenDelivered(journalFile, server.url, receiver) };
}

/** Kills the server, which the process that started it starts again, and waits for that. */
async function killPostgres({ url, dataDir }: TestServer): Promise<void> {
  const [pid = ''] = readFileSync(join(dataDir, 'postgres/cluster/postmaster.pid'), 'utf8').split('\n');
  process.kill(Number(pid), 'SIGKILL');
  for (;;) {
    const sql = postgres(url, { max: 1, connect_timeout: 2, onnotice: () => {} });
    const isBack = await sql`select 1`.then(
      () => readFileSync(join(dataDir, 'postgres/cluster/postmaster.pid'), 'utf8').split('\n')[0] !== pid,
      () => false,
    );
    await sql.end({ timeout: 1 });
    if (isBack) return;
    await sleep(50);
  }
}

/** Waits until the journal has so many more entries. */
async function shownMore(journalFile: string, more: number, signal: AbortSignal): Promise<void> {
  const before = acknowledgedIn(journalFile);
  while (acknowledgedIn(journalFile) < before + more) await sleep(50, undefined, { signal });
}

/** How many orders the journal shows as created, and as paid or cancelled. */
async function shownIn(journalFile: string) {
  const { entries } = await readJournal(journalFile);
  const count = (some: readonly JournalEntry[]) => new Set(some.map(({ number }) => number)).size;
  return {
    created: count(entries.filter(({ created }) => created !== undefined)),
    changed: count(entries.filter(({ status }) => status === 'PAID' || status === 'CANCELLED')),
  };
}

function shuffled<Item>(seed: number, items: readonly Item[]): Item[] {
  const random = seededAt(seed, 0);
  const drawn = items.map((item) => ({ item, order: random.fraction() }));
  return drawn.sort((a, b) => a.order - b.order).map(({ item }) => item);
}
