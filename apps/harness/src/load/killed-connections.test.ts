import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { expect, test } from 'vitest';
import { beginJournaledRun } from '../../testing/journaled-run.ts';
import { auditJournal } from '../audit/audit-journal.ts';
import { constantRate } from './arrivals.ts';
import type { LoadSettings } from './settings.ts';

const kills = 200;
const killEveryMs = 50;

const settings: LoadSettings = {
  ...{
    profile: 'none',
    mode: 'open',
    protocol: 'mixed',
    phases: constantRate(150, 24),
    connections: 4,
    underWayMax: 4_000,
  },
  ...{ merchants: 2, replayShare: 0.1, invalidShare: 0, seed: 20_261_121, workers: 1, thresholds: {} },
};

/** Ends the gateway's connections to the database, all that there are at a time: each is opened again 10 times a second at most. */
async function killConnections(databaseUrl: string, isOver: () => boolean): Promise<number> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  let killed = 0;
  while (killed < kills && !isOver()) {
    const victims = await sql`
      select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'order-gateway%'`;
    killed += victims.length;
    await sleep(killEveryMs);
  }
  await sql.end();
  return killed;
}

test('under load at all doors, 200 killed connections to the database leave every call answered and every order kept', {
  timeout: 90_000,
}, async () => {
  const { gateway, journalFile, isOver, ended } = await beginJournaledRun(settings);
  const { databaseUrl, httpUrl } = gateway;
  const killed = await killConnections(databaseUrl, isOver);
  const { totals } = await ended;
  expect(totals).toMatchObject({ unanswered: 0, dropped: 0, underWay: 0 });
  expect(totals.done).toBe(totals.sent);
  expect(killed).toBeGreaterThanOrEqual(kills);
  // The kills were felt.
  expect(totals.errors).toBeGreaterThan(0);
  const counts = await auditJournal(journalFile, databaseUrl);
  expect(counts).toMatchObject({ lost: 0, duplicated: 0, changed: 0 });
  expect(counts.acknowledged).toBeGreaterThan(totals.sent / 2);
  // The same process, as no other was started.
  expect((await fetch(`${httpUrl}/health/ready`)).status).toBe(200);
});
