import type { AccountId } from '@order-gateway/domain/accounts';
import { expect, test } from 'vitest';
import { createAdmission, type Permit } from './admission.ts';

const [heavy, first, second] = [1, 2, 3] as AccountId[] as [AccountId, AccountId, AccountId];

function setUp({ activeMax = 1_000, activeMin = 1 } = {}) {
  const state = { oldestOrderMs: 0 };
  const limits = { callsMax: 100, callsMaxWhenSlow: 10, orderAgeMaxMs: 150, activeMax, activeMin };
  const admission = createAdmission({ oldestOrderMs: () => state.oldestOrderMs, limits });
  const permits = new Map<AccountId, Permit[]>();
  /** The names of the calls whose work began, in this order. */
  const begun: string[] = [];
  /** Acquires up to this many permits and returns how many there were. */
  const enter = (id: AccountId, times: number, name = '') => {
    const entered = Array.from({ length: times }, () => admission.acquire(id)).filter((permit) => permit !== undefined);
    permits.set(id, [...(permits.get(id) ?? []), ...entered]);
    for (const permit of entered) {
      const slot = permit.start();
      if (slot === undefined) begun.push(name);
      else void slot.then(() => begun.push(name));
    }
    return entered.length;
  };
  /** Releases the oldest calls. */
  const leave = async (id: AccountId, times: number) => {
    for (const permit of permits.get(id)?.splice(0, times) ?? []) permit.release();
    await Promise.resolve();
  };
  /** Releases the newest call. */
  const giveUp = (id: AccountId) => permits.get(id)?.pop()?.release();
  return { admission, state, enter, leave, giveUp, begun };
}

test('an account that is alone gets all, and another its share at once', () => {
  const { enter } = setUp();
  expect([enter(heavy, 150), enter(first, 150), enter(heavy, 1), enter(second, 150)]).toEqual([100, 50, 0, 34]);
});

test('an account above its share gets no more until it is below it and the others have theirs', async () => {
  const { enter, leave } = setUp();
  enter(heavy, 100);
  enter(first, 20);
  await leave(heavy, 40);
  // With 80 in flight, 20 more fit.
  expect(enter(heavy, 50)).toBe(20);
  expect(enter(first, 50)).toBe(30);
  await leave(heavy, 50);
  expect([enter(heavy, 50), enter(first, 50)]).toEqual([20, 0]);
});

test('an account whose calls have all ended no longer has a share', async () => {
  const { enter, leave } = setUp();
  expect([enter(heavy, 100), enter(first, 50), enter(second, 50)]).toEqual([100, 50, 34]);
  await leave(first, 50);
  // Two accounts share 100 calls.
  expect(enter(second, 50)).toBe(16);
});

test('many accounts that start one after the other do not fill more than twice the limit', () => {
  const { enter } = setUp();
  let entered = 0;
  for (let id = 1; id <= 1_000; id += 1) entered += enter(id as AccountId, 100);
  expect(entered).toBe(200);
});

test('while orders are slow, the limit is lower, but not for merchants with few calls in flight', async () => {
  const { state, enter, leave } = setUp();
  expect(enter(heavy, 50)).toBe(50);
  state.oldestOrderMs = 151;
  expect([enter(heavy, 1), enter(first, 10)]).toEqual([0, 5]);
  await leave(heavy, 46);
  expect(enter(heavy, 10)).toBe(1);
  state.oldestOrderMs = 150;
  expect(enter(heavy, 200)).toBe(90);
});

test('above the active calls accounts wait and take turns', async () => {
  const { enter, leave, begun } = setUp({ activeMax: 4 });
  enter(heavy, 4, 'heavy');
  enter(heavy, 4, 'heavy waited');
  enter(first, 3, 'first');
  // One call of an account does not wait.
  expect(begun).toEqual(['heavy', 'heavy', 'heavy', 'heavy', 'first']);
  begun.length = 0;
  await leave(heavy, 1);
  expect(begun).toEqual([]);
  await leave(heavy, 4);
  expect(begun).toEqual(['heavy waited', 'first', 'heavy waited', 'first']);
  await leave(heavy, 2);
  expect(begun.slice(4)).toEqual(['heavy waited', 'heavy waited']);
});

test('an account with few active calls continues with its own next call', async () => {
  const { enter, leave, begun } = setUp({ activeMax: 1, activeMin: 2 });
  enter(heavy, 4, 'heavy');
  enter(first, 2, 'first');
  begun.length = 0;
  await leave(heavy, 1);
  await leave(first, 1);
  expect(begun).toEqual(['heavy']);
});

test('a call that ends while it waits gets no slot', async () => {
  const { enter, leave, giveUp, begun } = setUp({ activeMax: 1, activeMin: 0 });
  enter(heavy, 1, 'active');
  enter(heavy, 1, 'gives up');
  giveUp(heavy);
  enter(first, 1, 'waits');
  await leave(heavy, 1);
  expect(begun).toEqual(['active', 'waits']);
  await leave(first, 1);
  enter(heavy, 1, 'later');
  expect(begun.slice(2)).toEqual(['later']);
});

test('a call whose body has not arrived takes no slot', () => {
  const { admission, enter, begun } = setUp({ activeMax: 1, activeMin: 0 });
  const [slow, cancelled] = [admission.acquire(heavy), admission.acquire(heavy)];
  enter(heavy, 1, 'active');
  expect(begun).toEqual(['active']);
  cancelled?.release();
  expect(slow?.start()).toBeInstanceOf(Promise);
});
