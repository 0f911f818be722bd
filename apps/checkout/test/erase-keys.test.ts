import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { attempts, type connections } from '../src/store/schema.ts';
import type { Store } from '../src/store/store.ts';
import { openTestStore, storeConnection } from './helpers/test-store.ts';

let store: Store;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ store, close } = await openTestStore());
});
afterAll(() => close());

const longAgo = new Date(Date.now() - 7_200_000);

/** Connects an account, with a key, that was disconnected two hours ago. */
async function disconnected(connectionId: string, changes: Partial<typeof connections.$inferInsert> = {}) {
  const marks = { listedUntil: longAgo, reversedUntil: longAgo, comparedAt: new Date(0) };
  await storeConnection(store, connectionId, { provider: 'stripe', disconnectedAt: longAgo, ...marks, ...changes });
}

/** Stores an attempt. */
async function attempted(connectionId: string, change: Partial<typeof attempts.$inferInsert>): Promise<void> {
  const order = { merchantId: connectionId, orderId: 'o', orderToken: connectionId, serviceOrderId: 1 };
  const payment = { provider: 'stripe', connectionId, method: 'card', amountHundredths: 1n, currency: 'EUR' };
  const attempt = await store.start({ ...order, ...payment, locale: 'en', sessionEndsAt: new Date() });
  const { attemptId = '' } = attempt ?? {};
  await store.run((db) => db.update(attempts).set(change).where(eq(attempts.attemptId, attemptId)));
}

test('only keys of disconnected accounts that nothing needs are erased, and nothing uses them any more', async () => {
  await disconnected('con_unused');
  await disconnected('con_finished');
  await attempted('con_finished', { state: 'RECORDED', dueAt: null });
  await disconnected('con_connected', { disconnectedAt: null });
  await disconnected('con_just_now', { disconnectedAt: new Date() });
  await disconnected('con_refund');
  await disconnected('con_looks');
  await attempted('con_looks', { state: 'ENDED', dueAt: new Date(Date.now() + 86_400_000) });
  await disconnected('con_earlier', { merchantId: 'app_again' });
  await disconnected('con_again', { merchantId: 'app_again', disconnectedAt: null });
  await disconnected('con_other', { merchantId: 'app_again', account: 'acct_other' });

  expect(await store.eraseKeys(['con_refund'])).toBe(3);
  expect(await store.eraseKeys(['con_refund'])).toBe(0);
  const erased = (await store.listConnections()).filter(({ secrets }) => secrets.length === 0);
  const ids = ['con_finished', 'con_other', 'con_unused'];
  expect(erased.map(({ connectionId }) => connectionId).toSorted()).toEqual(ids);
  const logged = (await store.actions()).map(({ actor, action, merchantId, details }) => ({
    actor,
    action,
    merchantId,
    details,
  }));
  expect(logged).toContainEqual({
    actor: 'checkout',
    action: 'erase_key',
    merchantId: 'app_again',
    details: { connection_id: 'con_other', provider: 'stripe', mode: 'live', account: 'acct_other' },
  });
  expect(logged).toHaveLength(3);

  const compared: string[] = [];
  for (let next = await store.takeComparison(180); next; next = await store.takeComparison(180))
    compared.push(next.connectionId);
  const listed = (await store.takeLists('reversed')).map(({ connectionId }) => connectionId);
  for (const used of [compared, listed])
    expect(used.toSorted()).toEqual([
      'con_again',
      'con_connected',
      'con_earlier',
      'con_just_now',
      'con_looks',
      'con_refund',
    ]);
});
