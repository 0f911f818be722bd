import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { calls } from '../src/store/schema.ts';
import type { Attempt, Store } from '../src/store/store.ts';
import { openTestStore, startedAttempt } from './helpers/test-store.ts';

let store: Store;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ store, close } = await openTestStore());
});
afterAll(() => close());

/** Stores an attempt. Returns the function that prepares a call with an amount. */
async function storeAttempt(orderToken: string) {
  const attempt = (await store.start({ ...startedAttempt, orderToken })) as Attempt;
  return { attempt, prepare: (amount: number) => store.prepareCall(attempt, 'refund r-1', { amount }) };
}

test('two processes that make one call at the same time send one request under one key', async () => {
  const { prepare } = await storeAttempt('one-key');
  const [one, two] = await Promise.all([prepare(1), prepare(2)]);
  expect(one).toEqual({ key: expect.any(String), request: expect.anything() });
  expect(two).toEqual(one);
  await store.endCall(one.key, 'refused');
  expect(await prepare(3)).toEqual({ key: expect.not.stringMatching(one.key), request: { amount: 3 } });
});

test('a call is repeated with its key and its request for 23 hours, because providers forget keys after 24', async () => {
  const { attempt, prepare } = await storeAttempt('old-key');
  const setAge = (minutes: number) =>
    store.run((db) =>
      db
        .update(calls)
        .set({ createdAt: sql`now() - make_interval(mins => ${minutes})` })
        .where(eq(calls.attemptId, attempt.attemptId)),
    );
  const first = await prepare(1);
  await setAge(23 * 60 - 1);
  expect(await prepare(2)).toEqual(first);
  await setAge(23 * 60 + 1);
  expect(await prepare(3)).toEqual({ key: expect.not.stringMatching(first.key), request: { amount: 3 } });
});
