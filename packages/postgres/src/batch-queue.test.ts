import { expect, test } from 'vitest';
import { createBatchQueue } from './batch-queue.ts';

const enoughMs = 10_000;

/** A queue whose groups are held until they are let go, so that what shares a group can be seen. */
function heldQueue(options: { slots: number; batchMin?: number; batchMax: number; waitingMax: number }) {
  const groups: { items: readonly string[]; letGo: () => void }[] = [];
  const queue = createBatchQueue<number, string, string>({
    batchMin: options.batchMax,
    ...options,
    slots: Array.from({ length: options.slots }, (_, slot) => slot),
    run: (_slot, items) =>
      new Promise((resolve) => {
        groups.push({
          items,
          letGo: () => resolve(items.map((item) => (item === 'bad' ? new Error('bad') : `did ${item}`))),
        });
      }),
  });
  return { queue, groups };
}

const endOfTurn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test('a lone item leaves at once, and those that come while the slot is taken leave together', async () => {
  const { queue, groups } = heldQueue({ slots: 1, batchMax: 10, waitingMax: 10 });
  const first = queue.add('a', enoughMs);
  await endOfTurn();
  const later = ['b', 'c', 'd'].map((item) => queue.add(item, enoughMs));
  await endOfTurn();
  expect(groups.map(({ items }) => items)).toEqual([['a']]);
  groups[0]?.letGo();
  expect(await first).toBe('did a');
  await endOfTurn();
  expect(groups.map(({ items }) => items)).toEqual([['a'], ['b', 'c', 'd']]);
  groups[1]?.letGo();
  expect(await Promise.all(later)).toEqual(['did b', 'did c', 'did d']);
});

test('as many groups as slots are under way, none larger than the bound', async () => {
  const { queue, groups } = heldQueue({ slots: 2, batchMax: 2, waitingMax: 10 });
  const answers = ['a', 'b', 'c', 'd', 'e'].map((item) => queue.add(item, enoughMs));
  await endOfTurn();
  expect(groups.map(({ items }) => items)).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
  groups[1]?.letGo();
  await endOfTurn();
  expect(groups[2]?.items).toEqual(['e']);
  for (const { letGo } of groups) letGo();
  expect(await Promise.all(answers)).toEqual(['did a', 'did b', 'did c', 'did d', 'did e']);
});

test('enough items leave during the turn that brings them, as long as a slot is free', async () => {
  const { queue, groups } = heldQueue({ slots: 2, batchMin: 2, batchMax: 4, waitingMax: 10 });
  const answers = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((item) => queue.add(item, enoughMs));
  expect(groups.map(({ items }) => items)).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
  groups[0]?.letGo();
  await endOfTurn();
  expect(groups[2]?.items).toEqual(['e', 'f', 'g']);
  for (const { letGo } of groups) letGo();
  expect(await Promise.all(answers)).toHaveLength(7);
});

test('a caller who has been alone for a while does not wait for the end of the turn, until somebody comes along', async () => {
  const { queue, groups } = heldQueue({ slots: 2, batchMax: 4, waitingMax: 10 });
  const carryOut = async (...items: readonly string[]) => {
    const answers = items.map((item) => queue.add(item, enoughMs));
    const leftAtOnce = groups.length;
    await endOfTurn();
    for (const { letGo } of groups.splice(0)) letGo();
    await Promise.all(answers);
    return leftAtOnce;
  };
  const left: number[] = [];
  for (let count = 0; count < 10; count += 1) left.push(await carryOut('a'));
  expect(left).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
  // The first of two leaves at once, the second one with whoever comes next; then nobody is taken to be alone.
  expect([await carryOut('a', 'b'), await carryOut('a')]).toEqual([1, 0]);
});

test('an item whose time is over is answered so and never carried out', async () => {
  const { queue, groups } = heldQueue({ slots: 1, batchMax: 1, waitingMax: 1 });
  expect(await Promise.all([queue.add('a', 0), queue.add('b', -1)])).toEqual([
    'deadline_exceeded',
    'deadline_exceeded',
  ]);
  await endOfTurn();
  expect(groups).toEqual([]);
});

test('an item over the bound is refused, and one that waited too long is answered and never carried out', async () => {
  const { queue, groups } = heldQueue({ slots: 1, batchMax: 1, waitingMax: 1 });
  const first = queue.add('a', enoughMs);
  await endOfTurn();
  const tooLate = queue.add('b', 1);
  expect(await queue.add('c', enoughMs)).toBe('overloaded');
  expect(await tooLate).toBe('deadline_exceeded');
  const next = queue.add('d', enoughMs);
  groups[0]?.letGo();
  expect(await first).toBe('did a');
  await endOfTurn();
  expect(groups.map(({ items }) => items)).toEqual([['a'], ['d']]);
  groups[1]?.letGo();
  expect(await next).toBe('did d');
});

test('an error of one item rejects that caller alone', async () => {
  const { queue, groups } = heldQueue({ slots: 1, batchMax: 3, waitingMax: 3 });
  const answers = Promise.allSettled([queue.add('a', enoughMs), queue.add('bad', enoughMs)]);
  await endOfTurn();
  groups[0]?.letGo();
  expect((await answers).map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
});

test('it is idle only when nothing waits and nothing is under way', async () => {
  const { queue, groups } = heldQueue({ slots: 1, batchMax: 1, waitingMax: 3 });
  const answer = queue.add('a', enoughMs);
  let idle = false;
  const becameIdle = queue.idle().then(() => {
    idle = true;
  });
  await endOfTurn();
  expect(idle).toBe(false);
  groups[0]?.letGo();
  await answer;
  await becameIdle;
  expect(idle).toBe(true);
});
