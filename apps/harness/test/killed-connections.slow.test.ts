import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { expect, test } from 'vitest';
import { auditJournal } from '../src/audit/audit.ts';
import { constantRate } from '../src/load/arrivals.ts';
import { startJournaledRun } from './journaled-run.ts';

const kills = 250;
const killEveryMs = 50;

/** Ends all of the gateway's connections to the database, again and again: it reopens each up to 10 times a second. */
async function killConnections(databaseUrl: string, isOver: () => boolean): Promise<number> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  let killed = 0;
  while (killed < kills && !isOver()) {
    const victims = await sql`
      select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'order-gateway%' and datname = current_database()`;
    killed += victims.length;
    await sleep(killEveryMs);
  }
  await sql.end();
  return killed;
}

test('under load in all protocols, 250 killed database connections leave a response to every call and every order stored', {
  timeout: 90_000,
}, async () => {
  const profile = { protocol: 'mixed', phases: constantRate(150, 30), connections: 4, max_pending: 4_000 };
  const run = await startJournaledRun(20_261_121, { ...profile, replay_share: 0.1 });
  const { databaseUrl, httpUrl } = run.gateway;
  const killed = await killConnections(databaseUrl, run.isOver);
  const { recorder } = await run.ended;
  expect(recorder).toMatchObject({ unanswered: 0, dropped: 0, pending: 0 });
  expect(recorder.done).toBe(recorder.sent);
  expect(killed).toBeGreaterThanOrEqual(kills);
  // The kills were felt.
  expect(recorder.errors).toBeGreaterThan(0);
  const counts = await auditJournal(run.journalFile, databaseUrl);
  expect(counts).toMatchObject({ lost: 0, duplicated: 0, changed: 0 });
  expect(counts.acknowledged).toBeGreaterThan(recorder.sent / 2);
  // The same process, because no other was started.
  expect((await fetch(`${httpUrl}/health/ready`)).status).toBe(200);
});
