import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { AdvanceDeps } from '../src/attempts/advance.ts';
import { createSweep } from '../src/attempts/sweep.ts';
import { attempts } from '../src/store/schema.ts';
import type { Attempt, Store } from '../src/store/store.ts';
import { openTestStore, startedAttempt } from './helpers/test-store.ts';

let store: Store;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ store, close } = await openTestStore());
});
afterAll(() => close());
beforeEach(() => store.run((db) => db.delete(attempts)));

/** Stores an attempt that has been due for some seconds. */
async function storeDue(orderToken: string, connectionId: string, seconds: number): Promise<void> {
  await store.start({ ...startedAttempt, orderToken, connectionId });
  await store.run((db) =>
    db
      .update(attempts)
      .set({ dueAt: new Date(Date.now() - seconds * 1_000) })
      .where(eq(attempts.orderToken, orderToken)),
  );
}

test('the accounts take turns with due attempts, the longest due first', async () => {
  for (const [index, seconds] of [60, 50, 40].entries()) await storeDue(`busy${index}`, 'con_busy', seconds);
  await storeDue('other', 'con_other', 5);
  const due = await Promise.all((await store.due(3)).map(({ attemptId }) => store.find(attemptId)));
  expect(due.map((attempt) => attempt?.orderToken)).toEqual(['busy0', 'other', 'busy1']);
});

test('a payment counts as stuck if the provider cannot be asked about its session, which has ended', async () => {
  await storeDue('open', 'con_revoked', 60);
  const oldest = async (change: Partial<Attempt>) => {
    const createdAt = new Date(Date.now() - 7_200_000);
    await store.run((db) => db.update(attempts).set({ createdAt, ...change }));
    return (await store.moneyOnItsWay())?.oldestSeconds;
  };
  const sessionEndsAt = new Date(Date.now() - 60_000);
  expect(await oldest({ state: 'OPEN', sessionEndsAt })).toBe(0);
  expect(await oldest({ failures: 3 })).toBeGreaterThanOrEqual(7_200);
  expect(await oldest({ sessionEndsAt: new Date(Date.now() + 60_000) })).toBe(0);
});

test('the runs continue all due attempts, more than are continued at once, until the last one is done', async () => {
  const tokens = Array.from({ length: 25 }, (_, index) => `token${index}`);
  for (const token of tokens) await storeDue(token, 'con_busy', 5);
  const continued: string[] = [];
  const sweep = createSweep({
    ...({ store } as AdvanceDeps),
    async advance(attemptId) {
      continued.push(attemptId);
      await store.run((db) => db.update(attempts).set({ dueAt: null }).where(eq(attempts.attemptId, attemptId)));
      return undefined;
    },
  });
  while (!(await sweep.continueDue()).isDone);
  expect(new Set(continued).size).toBe(tokens.length);
  expect(await store.due(1)).toEqual([]);
});
