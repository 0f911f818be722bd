import type { AccountId } from '@order-gateway/domain/accounts';
import { expect, test } from 'vitest';
import { createAdmission, type Permit } from './admission.ts';

const [heavy, first, second] = [1, 2, 3] as AccountId[] as [AccountId, AccountId, AccountId];

function setUp({ activeMax = 1_000, activeMin = 1 } = {}) {
  const state = { oldestOrderMs: 0 };
  const limits = { callsMax: 100, callsMaxWhenSlow: 10, orderAgeMaxMs: 150, activeMax, activeMin };
  const admission = createAdmission(limits, () => state.oldestOrderMs);
  const permits = new Map<AccountId, Permit[]>();
  /** The names of the calls whose work has started, in order. */
  const started: string[] = [];
  /** Tries to acquire `times` permits, and returns how many it got. */
  const acquire = (id: AccountId, times: number, name = '') => {
    const acquired = Array.from({ length: times }, () => admission.acquire(id)).filter(
      (permit) => permit !== undefined,
    );
    permits.set(id, [...(permits.get(id) ?? []), ...acquired]);
    for (const permit of acquired) {
      const slot = permit.start();
      if (slot === undefined) started.push(name);
      else void slot.then(() => started.push(name));
    }
    return acquired.length;
  };
  /** Releases the oldest calls. */
  const release = async (id: AccountId, times: number) => {
    for (const permit of permits.get(id)?.splice(0, times) ?? []) permit.release();
    await Promise.resolve();
  };
  /** Releases the newest call. */
  const cancelNewest = (id: AccountId) => permits.get(id)?.pop()?.release();
  return { admission, state, acquire, release, cancelNewest, started };
}

test('the only account gets every permit, and a second account gets its share immediately', () => {
  const { acquire } = setUp();
  expect([acquire(heavy, 150), acquire(first, 150), acquire(heavy, 1), acquire(second, 150)]).toEqual([100, 50, 0, 34]);
});

test('an account above its share gets only free capacity, while others reach their share', async () => {
  const { acquire, release } = setUp();
  acquire(heavy, 100);
  acquire(first, 20);
  await release(heavy, 40);
  // With 80 in flight, 20 more fit.
  expect(acquire(heavy, 50)).toBe(20);
  expect(acquire(first, 50)).toBe(30);
  await release(heavy, 50);
  expect([acquire(heavy, 50), acquire(first, 50)]).toEqual([20, 0]);
});

test('an account whose calls have all ended no longer has a share', async () => {
  const { acquire, release } = setUp();
  expect([acquire(heavy, 100), acquire(first, 50), acquire(second, 50)]).toEqual([100, 50, 34]);
  await release(first, 50);
  // Two accounts share 100 calls.
  expect(acquire(second, 50)).toBe(16);
});

test('an account with one call left keeps its share', async () => {
  const { acquire, release } = setUp();
  expect([acquire(heavy, 100), acquire(first, 50)]).toEqual([100, 50]);
  await release(first, 49);
  expect(acquire(first, 50)).toBe(49);
});

test('many accounts that start one after another do not exceed twice the limit', () => {
  const { acquire } = setUp();
  let acquired = 0;
  for (let id = 1; id <= 1_000; id += 1) acquired += acquire(id as AccountId, 100);
  expect(acquired).toBe(200);
});

test('while orders are stored slowly, the limit is lower, but accounts below their share are admitted', async () => {
  const { state, acquire, release } = setUp();
  expect(acquire(heavy, 50)).toBe(50);
  state.oldestOrderMs = 151;
  expect([acquire(heavy, 1), acquire(first, 10)]).toEqual([0, 5]);
  await release(heavy, 46);
  expect(acquire(heavy, 10)).toBe(1);
  state.oldestOrderMs = 150;
  expect(acquire(heavy, 200)).toBe(90);
});

test('when all slots are taken, calls wait and accounts take turns', async () => {
  const { acquire, release, started } = setUp({ activeMax: 4 });
  acquire(heavy, 4, 'heavy');
  acquire(heavy, 4, 'heavy waited');
  acquire(first, 3, 'first');
  // The first active call of an account does not wait.
  expect(started).toEqual(['heavy', 'heavy', 'heavy', 'heavy', 'first']);
  started.length = 0;
  await release(heavy, 1);
  expect(started).toEqual([]);
  await release(heavy, 4);
  expect(started).toEqual(['heavy waited', 'first', 'heavy waited', 'first']);
  await release(heavy, 2);
  expect(started.slice(4)).toEqual(['heavy waited', 'heavy waited']);
});

test('an account with few active calls passes a released slot to its own next call', async () => {
  const { acquire, release, started } = setUp({ activeMax: 1, activeMin: 2 });
  acquire(heavy, 4, 'heavy');
  acquire(first, 2, 'first');
  started.length = 0;
  await release(heavy, 1);
  await release(first, 1);
  expect(started).toEqual(['heavy']);
});

test('a call that ends while it waits gets no slot', async () => {
  const { acquire, release, cancelNewest, started } = setUp({ activeMax: 1, activeMin: 0 });
  acquire(heavy, 1, 'active');
  acquire(heavy, 1, 'gives up');
  cancelNewest(heavy);
  acquire(first, 1, 'waits');
  await release(heavy, 1);
  expect(started).toEqual(['active', 'waits']);
  await release(first, 1);
  acquire(heavy, 1, 'later');
  expect(started.slice(2)).toEqual(['later']);
});

test('a call whose body has not arrived takes no slot', () => {
  const { admission, acquire, started } = setUp({ activeMax: 1, activeMin: 0 });
  const [slow, cancelled] = [admission.acquire(heavy), admission.acquire(heavy)];
  acquire(heavy, 1, 'active');
  expect(started).toEqual(['active']);
  cancelled?.release();
  expect(slow?.start()).toBeInstanceOf(Promise);
});
