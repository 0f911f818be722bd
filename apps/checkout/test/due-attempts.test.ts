import { migrateDatabase } from '@order-gateway/postgres/migrate';
import { createMigratedDatabase } from '@order-gateway/postgres/testing/migrated-database';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { AdvanceDeps } from '../src/attempts/advance.ts';
import { createSweep } from '../src/attempts/sweep.ts';
import { checkoutMigrations } from '../src/store/migrate.ts';
import { attempts } from '../src/store/schema.ts';
import { openStore, type Store } from '../src/store/store.ts';

let store: Store;
const closing: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  const database = await createMigratedDatabase();
  closing.push(database.drop);
  await migrateDatabase(database.url, undefined, checkoutMigrations);
  store = openStore({ url: database.url });
  closing.push(store.close);
});
afterAll(async () => {
  for (const close of closing.toReversed()) await close();
});
beforeEach(() => store.run((db) => db.delete(attempts)));

/** Stores an attempt that has been due for some seconds. */
async function storeDue(orderToken: string, connectionId: string, seconds: number): Promise<void> {
  const order = { merchantId: 'app_live_1', orderId: 'o', orderToken, serviceOrderId: 1, amountHundredths: 1n };
  const payment = { provider: 'stripe', connectionId, method: 'card', currency: 'EUR', locale: 'en' };
  await store.start({ ...order, ...payment, sessionEndsAt: new Date() });
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

test('one run continues more due attempts than it continues at once', async () => {
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
  await sweep.continueDue(new AbortController().signal);
  expect(new Set(continued).size).toBe(tokens.length);
  expect(await store.due(1)).toEqual([]);
});
