import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createListReader } from '../src/attempts/lists.ts';
import { ProviderError } from '../src/providers/provider.ts';
import type { Store } from '../src/store/store.ts';
import { openTestStore, storeConnection } from './helpers/test-store.ts';

let store: Store;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ store, close } = await openTestStore());
  vi.useFakeTimers({ toFake: ['Date'] });
});
afterAll(async () => {
  vi.useRealTimers();
  await close();
});

test('a list that could not be read is read as far back as the daily comparison requires since then', async () => {
  const connectionId = 'con_compared';
  const [compared, readUntil] = [25, 2].map((hours) => new Date(Date.now() - hours * 3_600_000));
  await storeConnection(store, connectionId, { comparedAt: compared, reversedUntil: readUntil });
  expect(await store.takeLists('reversed')).toMatchObject([{ connectionId, readUntil }]);
  await store.takeComparison(180);
  await store.resetList(connectionId, 'reversed', readUntil ?? new Date());
  const { reversedUntil } = (await store.findConnection(connectionId)) ?? {};
  expect(Math.round((Date.now() - Number(reversedUntil)) / 86_400_000)).toBe(180);
  await store.disconnect(connectionId, 'tester');
});

test('a list that cannot be read is read again after growing pauses, and does not delay another account', async () => {
  const longAgo = new Date(Date.now() - 7_200_000);
  for (const connectionId of ['con_broken', 'con_working'])
    await storeConnection(store, connectionId, { listedUntil: longAgo });
  const reads: string[] = [];
  const used: unknown[] = [];
  const provider = {
    async *recent({ connectionId }: { readonly connectionId: string }, since: Date) {
      reads.push(`${connectionId} ${since.getTime() - longAgo.getTime()}`);
      if (connectionId === 'con_broken') throw new ProviderError('unanswered', 'no_response');
      yield 'att_1';
    },
  };
  const deps = {
    store,
    providers: new Map([['listed', provider]]),
    accountOf: async (connectionId: string) => ({ connectionId }),
    logger: { warn() {} },
  } as unknown as Parameters<typeof createListReader>[0];
  const readLists = createListReader(deps, 'recent', async (connectionId, ids) => void used.push([connectionId, ids]));
  await readLists();
  expect(used).toEqual([['con_working', ['att_1']]]);
  const broken = 'con_broken -3600000';
  const isBroken = (read: string) => read === broken;
  expect(reads.filter(isBroken)).toHaveLength(1);
  for (const [seconds, count] of [
    [0, 1],
    [1, 2],
    [1, 2],
    [1, 3],
    [3, 3],
    [1, 4],
    ...Array.from({ length: 10 }, (_, index) => [60, 5 + index] as const),
  ] as const) {
    vi.setSystemTime(Date.now() + seconds * 1_000);
    await readLists();
    expect([seconds, reads.filter(isBroken).length]).toEqual([seconds, count]);
  }
});
