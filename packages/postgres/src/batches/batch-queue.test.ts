import { expect, onTestFinished, test, vi } from 'vitest';
import { ConnectionLost } from '../connections/errors.ts';
import { createBatchQueue } from './batch-queue.ts';

const enoughMs = 10_000;

type Done = { readonly kind: 'done'; readonly item: string };

const done = (item: string): Done => ({ kind: 'done', item });

/** Creates a queue whose batches end when the test finishes them, so that the test sees which items share a batch. */
function createTestQueue(options: {
  clients: number;
  batchMin?: number;
  batchMax: number;
  waitingMax: number;
  ownerOf?: (item: string) => unknown;
}) {
  const batches: { items: readonly string[]; finish: () => void }[] = [];
  let closed = 0;
  const close = async () => {
    closed += 1;
  };
  const queue = createBatchQueue<{ close(): Promise<void> }, string, Done>({
    name: 'test',
    batchMin: options.batchMax,
    ...options,
    clients: Array.from({ length: options.clients }, () => ({ close })),
    run: (_client, items) =>
      new Promise((resolve, reject) => {
        const finish = () => {
          if (items.includes('lost')) reject(new ConnectionLost());
          else if (items.includes('bad syntax')) reject(Object.assign(new Error(), { code: '42601' }));
          else if (items.includes('bad')) reject(new Error('syntax error at bad'));
          else resolve(items.map(done));
        };
        batches.push({ items, finish });
      }),
  });
  return { queue, batches, closed: () => closed };
}

const endOfTurn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

test('a lone item is sent immediately, and items that arrive while the client is busy are sent together', async () => {
  const { queue, batches } = createTestQueue({ clients: 1, batchMax: 10, waitingMax: 10 });
  const first = queue.add('a', enoughMs);
  await endOfTurn();
  const later = ['b', 'c', 'd'].map((item) => queue.add(item, enoughMs));
  await endOfTurn();
  expect(batches.map(({ items }) => items)).toEqual([['a']]);
  batches[0]?.finish();
  expect(await first).toEqual(done('a'));
  await endOfTurn();
  expect(batches.map(({ items }) => items)).toEqual([['a'], ['b', 'c', 'd']]);
  batches[1]?.finish();
  expect(await Promise.all(later)).toEqual(['b', 'c', 'd'].map(done));
});

test('a queue runs one batch per client at a time, and none is larger than the limit', async () => {
  const { queue, batches } = createTestQueue({ clients: 2, batchMax: 2, waitingMax: 10 });
  const outcomes = ['a', 'b', 'c', 'd', 'e'].map((item) => queue.add(item, enoughMs));
  await endOfTurn();
  expect(batches.map(({ items }) => items)).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
  batches[1]?.finish();
  await endOfTurn();
  expect(batches[2]?.items).toEqual(['e']);
  for (const { finish } of batches) finish();
  expect(await Promise.all(outcomes)).toEqual(['a', 'b', 'c', 'd', 'e'].map(done));
});

test('if a client is free, enough items for a batch are sent during the turn in which they arrive', async () => {
  const { queue, batches } = createTestQueue({ clients: 2, batchMin: 2, batchMax: 4, waitingMax: 10 });
  const outcomes = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((item) => queue.add(item, enoughMs));
  expect(batches.map(({ items }) => items)).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
  batches[0]?.finish();
  await endOfTurn();
  expect(batches[2]?.items).toEqual(['e', 'f', 'g']);
  for (const { finish } of batches) finish();
  expect(await Promise.all(outcomes)).toHaveLength(7);
});

test('after a series of lone items, an item is sent before the end of the turn, until two items arrive together', async () => {
  const { queue, batches } = createTestQueue({ clients: 2, batchMax: 4, waitingMax: 10 });
  const countBatchesSentAtOnce = async (...items: readonly string[]) => {
    const outcomes = items.map((item) => queue.add(item, enoughMs));
    const sentAtOnce = batches.length;
    await endOfTurn();
    for (const { finish } of batches.splice(0)) finish();
    await Promise.all(outcomes);
    return sentAtOnce;
  };
  const counts: number[] = [];
  for (let count = 0; count < 10; count += 1) counts.push(await countBatchesSentAtOnce('a'));
  expect(counts).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
  // The first of two items is sent immediately. After that, the queue no longer assumes that an item is alone.
  expect([await countBatchesSentAtOnce('a', 'b'), await countBatchesSentAtOnce('a')]).toEqual([1, 0]);
});

test('an item with an outcome leaves no timer behind', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { queue, batches } = createTestQueue({ clients: 1, batchMax: 1, waitingMax: 1 });
  const outcome = queue.add('a', enoughMs);
  await endOfTurn();
  expect(vi.getTimerCount()).toBe(1);
  batches[0]?.finish();
  expect(await outcome).toEqual(done('a'));
  expect(vi.getTimerCount()).toBe(0);
});

test('an item without any time left never runs', async () => {
  const { queue, batches } = createTestQueue({ clients: 1, batchMax: 1, waitingMax: 1 });
  const late = { kind: 'deadline_exceeded' };
  expect(await Promise.all([queue.add('a', 0), queue.add('b', -1)])).toEqual([late, late]);
  await endOfTurn();
  expect(batches).toEqual([]);
});

test('an item beyond the limit is rejected immediately as overloaded, and one that waits too long never runs', async () => {
  const { queue, batches } = createTestQueue({ clients: 1, batchMax: 1, waitingMax: 1 });
  const first = queue.add('a', enoughMs);
  await endOfTurn();
  const tooLate = queue.add('b', 1);
  expect(await queue.add('c', enoughMs)).toEqual({ kind: 'overloaded' });
  expect(await tooLate).toEqual({ kind: 'deadline_exceeded' });
  const next = queue.add('d', enoughMs);
  batches[0]?.finish();
  expect(await first).toEqual(done('a'));
  await endOfTurn();
  expect(batches.map(({ items }) => items)).toEqual([['a'], ['d']]);
  batches[1]?.finish();
  expect(await next).toEqual(done('d'));
});

test('an item that the database rejects is found by halving its batch, and fails alone with an error without values', async () => {
  const { queue, batches } = createTestQueue({ clients: 1, batchMax: 8, waitingMax: 8 });
  const items = ['a', 'b', 'c', 'd', 'e', 'bad', 'f', 'g'];
  const outcomes = Promise.allSettled(items.map((item) => queue.add(item, enoughMs)));
  const expected = [items, items.slice(0, 4), items.slice(4), ['e', 'bad'], ['e'], ['bad'], ['f', 'g']];
  for (const index of expected.keys()) {
    await endOfTurn();
    batches[index]?.finish();
  }
  const settled = await outcomes;
  expect(batches.map((batch) => batch.items)).toEqual(expected);
  const [bad] = settled.splice(5, 1);
  expect(settled).toMatchObject(items.filter((item) => item !== 'bad').map((item) => ({ value: done(item) })));
  expect(bad).toMatchObject({ reason: { message: 'the database rejected a statement: Error' } });
});

test('a batch that fails regardless of its items is not retried in parts', async () => {
  const { queue, batches } = createTestQueue({ clients: 1, batchMax: 2, waitingMax: 2 });
  const outcomes = Promise.allSettled(['a', 'bad syntax'].map((item) => queue.add(item, enoughMs)));
  await endOfTurn();
  batches[0]?.finish();
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(batches).toHaveLength(1);
});

test('if the connection of a batch is lost, its items fail as unavailable, and the batch does not run again', async () => {
  const { queue, batches } = createTestQueue({ clients: 1, batchMax: 2, waitingMax: 2 });
  const outcomes = Promise.all(['a', 'lost'].map((item) => queue.add(item, enoughMs)));
  await endOfTurn();
  batches[0]?.finish();
  expect(await outcomes).toEqual([{ kind: 'unavailable' }, { kind: 'unavailable' }]);
  expect(batches).toHaveLength(1);
});

test('a queue closes its clients only when no item is waiting or in flight', async () => {
  const { queue, batches, closed } = createTestQueue({ clients: 1, batchMax: 1, waitingMax: 3 });
  const outcomes = Promise.all(['a', 'b'].map((item) => queue.add(item, enoughMs)));
  const closing = queue.close();
  for (const index of [0, 1]) {
    await endOfTurn();
    expect(closed()).toBe(0);
    batches[index]?.finish();
  }
  await Promise.all([outcomes, closing]);
  expect(closed()).toBe(1);
});

test('if more items wait than fit into a batch, the owners take turns', async () => {
  const { queue, batches } = createTestQueue({ clients: 1, batchMax: 4, waitingMax: 20, ownerOf: ([owner]) => owner });
  const first = queue.add('a0', enoughMs);
  await endOfTurn();
  const items = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'b1', 'b2', 'c1'];
  const outcomes = items.map((item) => queue.add(item, enoughMs));
  for (const index of [0, 1, 2, 3]) {
    batches[index]?.finish();
    await endOfTurn();
  }
  expect(batches.map((batch) => batch.items)).toEqual([
    ['a0'],
    ['b1', 'c1', 'a1', 'b2'],
    ['a2', 'a3', 'a4', 'a5'],
    ['a6'],
  ]);
  expect(await Promise.all([first, ...outcomes])).toEqual(['a0', ...items].map(done));
});

test('an owner that always has items waiting delays each item of another owner by one turn', async () => {
  const { queue, batches } = createTestQueue({ clients: 1, batchMax: 1, waitingMax: 20, ownerOf: ([owner]) => owner });
  const outcomes = Array.from({ length: 16 }, (_, index) => queue.add(`a${index}`, enoughMs));
  await endOfTurn();
  for (const item of ['b0', 'b1', 'b2']) {
    const waited = batches.length;
    const outcome = queue.add(item, enoughMs);
    while (batches.at(-1)?.items[0] !== item) {
      batches.at(-1)?.finish();
      await endOfTurn();
    }
    expect(batches.length - waited).toBe(1);
    // The batch ends after the next one of the greedy owner has begun.
    batches.at(-1)?.finish();
    expect(await outcome).toEqual(done(item));
    await endOfTurn();
  }
  while (batches.length < 19) {
    batches.at(-1)?.finish();
    await endOfTurn();
  }
  batches.at(-1)?.finish();
  expect(await Promise.all(outcomes)).toHaveLength(16);
});

test('a full queue admits the items of an owner below its share, and an item is not too late because of others', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { queue, batches } = createTestQueue({ clients: 1, batchMax: 1, waitingMax: 4, ownerOf: ([owner]) => owner });
  const add = (...items: readonly string[]) => items.map((item) => queue.add(item, enoughMs));
  const outcomes = add('a0');
  await endOfTurn();
  outcomes.push(...add('a1', 'a2', 'a3', 'a4'));
  expect(await queue.add('a5', enoughMs)).toEqual({ kind: 'overloaded' });
  vi.advanceTimersByTime(2 * enoughMs);
  outcomes.push(...add('b1', 'b2'));
  expect(await queue.add('b3', enoughMs)).toEqual({ kind: 'overloaded' });
  outcomes.push(...add('c1', 'd1'));
  expect(await queue.add('e1', enoughMs)).toEqual({ kind: 'overloaded' });
  for (let index = 0; index < outcomes.length; index += 1) {
    batches[index]?.finish();
    await endOfTurn();
  }
  expect(batches.map(({ items }) => items[0])).toEqual(['a0', 'b1', 'c1', 'd1', 'a1', 'b2', 'a2', 'a3', 'a4']);
  expect(await Promise.all(outcomes)).toHaveLength(9);
});

test('a queue reports the age of its oldest item, and rejects an item that would wait too long', async () => {
  const { queue, batches } = createTestQueue({ clients: 1, batchMax: 1, waitingMax: 9 });
  expect(queue.oldestMs()).toBe(0);
  const first = queue.add('a', enoughMs);
  await endOfTurn();
  const second = queue.add('b', enoughMs);
  await expect.poll(queue.oldestMs).toBeGreaterThan(20);
  expect(await queue.add('c', 10)).toEqual({ kind: 'overloaded' });
  batches[0]?.finish();
  await first;
  await endOfTurn();
  batches[1]?.finish();
  expect(await second).toEqual(done('b'));
  expect(queue.oldestMs()).toBe(0);
});
