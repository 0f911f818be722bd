import type { AccountId } from '@order-gateway/domain/accounts';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { openOnServers } from '../../src/merchant-servers.ts';
import { type RefundLists, refundListsOn } from '../../src/orders/find/refund-lists.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

// Tests the calls to several servers with tables that stand in for the metadata of Citus: server 2 has one of four
// shards, and server 1 the others.

const database = useTestDatabase();

beforeAll(async () => {
  await database.sql.unsafe(`
    create table pg_dist_shard (logicalrelid regclass, shardid bigint);
    create table pg_dist_placement (shardid bigint, groupid int);
    create function get_shard_id_for_distribution_column(regclass, bigint) returns bigint
      language sql return $2 % 4;
    insert into pg_dist_shard select 'orders'::regclass, generate_series(0, 3);
    insert into pg_dist_placement values (0, 1), (1, 1), (2, 1), (3, 2)`);
});

/** Opens the servers. The resources of each are an object with its number. */
function openServers() {
  const opened: number[] = [];
  const servers = openOnServers({ ...database.options, isDistributed: true }, ({ server }) => {
    const number = server?.number ?? -1;
    opened.push(number);
    return { number, close: async () => {} };
  });
  onTestFinished(() => servers.close());
  return { servers, opened };
}

const enoughMs = 60_000;

test('a call uses the resources of its merchant’s server, which are opened once', async () => {
  const { servers, opened } = openServers();
  const serverOf = (id: number) => servers.call(id as AccountId, enoughMs, async ({ number }) => number);
  expect([await serverOf(4), await serverOf(3), await serverOf(7), await serverOf(4)]).toEqual([1, 2, 2, 1]);
  expect(opened).toEqual([1, 2]);
});

test('each server gets its share of all merchants, and a share of a call’s time', async () => {
  const { servers } = openServers();
  const shares = await servers.onEach(async ({ number }, _, share) => [number, share])(undefined);
  expect(shares.sort()).toEqual([
    [1, 0.75],
    [2, 0.25],
  ]);
  expect(await servers.callEach(enoughMs, async (_, timeoutMs) => timeoutMs)).toEqual([enoughMs / 2, enoughMs / 2]);
});

test('a hanging server delays no other, gets no second call, and its outcome is returned when it ends', async () => {
  const { servers } = openServers();
  const hanging = Promise.withResolvers<string>();
  const calls: number[] = [];
  const collect = servers.onEach(({ number }) => {
    calls.push(number);
    return number === 1 ? hanging.promise : Promise.resolve('2');
  }, 20);
  expect([await collect(undefined), await collect(undefined)]).toEqual([['2'], ['2']]);
  expect(calls.sort()).toEqual([1, 2, 2]);
  hanging.resolve('1');
  await hanging.promise;
  expect((await collect(undefined)).sort()).toEqual(['1', '2']);
  expect(calls.sort()).toEqual([1, 2, 2, 2]);
});

test('an error of one server is thrown once, and the outcomes of the others are kept', async () => {
  const { servers } = openServers();
  let fails = true;
  const collect = servers.onEach(async ({ number }) => {
    if (number === 1 && fails) throw new Error('a bug');
    return number;
  });
  await expect(collect(undefined)).rejects.toThrow('a bug');
  fails = false;
  expect((await collect(undefined)).sort()).toEqual([1, 2]);
  expect((await collect(undefined)).sort()).toEqual([1, 2]);
});

test('orders that are not distributed are on the coordinator', async () => {
  await database.sql`update pg_dist_shard set logicalrelid = 'events'::regclass`;
  onTestFinished(async () => void (await database.sql`update pg_dist_shard set logicalrelid = 'orders'::regclass`));
  const { servers } = openServers();
  expect(await servers.onEach(async ({ number }, _, share) => [number, share])(undefined)).toEqual([[0, 1]]);
  expect(await servers.call(3 as AccountId, enoughMs, async ({ number }) => number)).toBe(0);
});

type Lists = Partial<RefundLists>;

/** Returns the lists of servers that have these parts. */
const listsOf = (parts: readonly Lists[]) =>
  refundListsOn({
    onEach: (use: (lists: Lists) => Promise<unknown>) => () => Promise.all(parts.map(use)),
    callEach: (timeoutMs: number, use: (lists: Lists, timeoutMs: number) => Promise<unknown>) =>
      Promise.all(parts.map((part) => use(part, timeoutMs))),
  } as unknown as Parameters<typeof refundListsOn>[0]);

test('a page of pending refunds has the oldest of all servers that respond', async () => {
  const found = (...refunds: readonly (readonly [createdAtMs: number, serviceOrderId: number])[]) => ({
    listPendingRefunds: async () =>
      ({
        kind: 'found',
        refunds: refunds.map(([createdAtMs, serviceOrderId]) => ({ createdAtMs, serviceOrderId })),
      }) as never,
  });
  const failed = { listPendingRefunds: async () => ({ kind: 'overloaded' }) as never };
  const page = (...parts: readonly Lists[]) =>
    listsOf(parts).listPendingRefunds(1 as AccountId, { limit: 3 }, enoughMs);
  const listed = await page(found([1, 5], [3, 2]), failed, found([2, 9], [1, 6], [4, 1]));
  expect(listed).toMatchObject({
    kind: 'found',
    refunds: [{ serviceOrderId: 5 }, { serviceOrderId: 6 }, { createdAtMs: 2 }],
  });
  expect(Object(listed).refunds).toHaveLength(3);
  expect(await page(failed, failed)).toEqual({ kind: 'overloaded' });
  expect(await page()).toEqual({ kind: 'unavailable' });
});

test('the health of refunds is that of the server where they have waited longest', async () => {
  const health = (...parts: readonly (readonly [owedSeconds: number, pendingSeconds: number] | undefined)[]) =>
    listsOf(
      parts.map((part) => ({
        readRefundHealth: async () => part && { owedSeconds: part[0], pendingSeconds: part[1] },
      })),
    ).readRefundHealth();
  expect(await health([7, 1], undefined, [2, 3])).toEqual({ owedSeconds: 7, pendingSeconds: 3 });
  expect(await health(undefined)).toBeUndefined();
});
