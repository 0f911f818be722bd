import { sql } from 'drizzle-orm';
import { expect, onTestFinished, test } from 'vitest';
import { isNoticed } from '../src/store/attempts.ts';
import { attempts } from '../src/store/schema.ts';
import { openTestStore, startedAttempt } from './helpers/test-store.ts';

test('a notice reads only the attempts that it is about, however many a connection has', async () => {
  const { store, close } = await openTestStore();
  onTestFinished(close);
  const stored = Array.from({ length: 2_000 }, (_, number) => ({
    ...startedAttempt,
    attemptId: `att_${number}`,
    orderToken: `token_${number}`,
    sessionId: `ses_${number}`,
    paymentId: `pay_${number}`,
  }));
  await store.run((db) => db.insert(attempts).values(stored));
  await store.run((db) => db.execute(sql`analyze ${attempts}`));
  const plan = await store.run((db) =>
    db.execute<{ 'QUERY PLAN': string }>(
      sql`explain (analyze, costs off, timing off, summary off) select * from ${attempts} where ${isNoticed('con_1', ['pay_1'])}`,
    ),
  );
  const text = plan.map((row) => row['QUERY PLAN']).join('\n');
  expect(text).toContain('attempts_of_payment');
  expect(text).not.toContain('Rows Removed by Filter');
});
