import type { EventPosition } from '@order-gateway/domain/events';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import postgres from 'postgres';
import { afterAll, expect, test } from 'vitest';
import type { PostgresOrderStore } from '../../src/order-store.ts';
import { createMerchantId, createOrder } from '../../testing/contract-store.ts';
import { useOrderStores } from '../../testing/order-stores.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;
const database = useTestDatabase();
const openStore = useOrderStores(database);
const sessions: postgres.Sql[] = [];
afterAll(() => Promise.all(sessions.map((session) => session.end())));

/**
 * Yields every interleaving of the two steps of each writer. A writer begins only after all writers with lower numbers,
 * because the writers are interchangeable.
 */
function* schedulesOf(writers: number, done: readonly number[] = []): Generator<readonly number[]> {
  if (done.length === 2 * writers) yield done;
  for (let writer = 0; writer < writers; writer += 1) {
    const steps = done.filter((doneWriter) => doneWriter === writer).length;
    const isNext = writer === 0 || done.includes(writer - 1);
    if (steps < 2 && isNext) yield* schedulesOf(writers, [...done, writer]);
  }
}

test('pages read between any two steps of three writers miss no event and repeat none', async () => {
  const [writer, ...readers] = [openStore(), openStore(), openStore()] as const;
  for (let index = 0; index < 3; index += 1) sessions.push(postgres(database.url, { max: 1, onnotice: () => {} }));
  const schedules = [...schedulesOf(3)];
  expect(schedules).toHaveLength(15);
  for (const schedule of schedules) {
    const merchantId = await createMerchantId(database.sql);
    const orderIds = sessions.map((_, index) => `order-${index}`);
    for (const order_id of orderIds) await createOrder(writer, sampleOrder(merchantId, { order_id }));
    const follow = (store: PostgresOrderStore) => {
      const seen: string[] = [];
      let after: EventPosition | undefined;
      return async () => {
        const page = await store.listEvents(merchantId, { after, limit: 1 }, enoughMs);
        if (page.kind !== 'found') throw new Error(page.kind);
        seen.push(...page.events.map(({ order }) => order.fields.order_id));
        after = page.scannedTo ?? after;
        return seen;
      };
    };
    const [readOften, readSeldom] = readers.map(follow) as [() => Promise<string[]>, () => Promise<string[]>];
    for (const [step, index] of schedule.entries()) {
      const session = sessions[index] as postgres.Sql;
      if (schedule.indexOf(index) === step) {
        await session`begin`;
        await session`select change_order(${merchantId}, ${orderIds[index] ?? ''}, 'UN_PAID', 'CANCELLED', 'order.cancelled', null, null, null, now())`;
      } else await session`commit`;
      await readOften();
      if (step % 2 === 1) await readSeldom();
    }
    for (const read of [readOften, readSeldom]) for (let page = 0; page < orderIds.length; page += 1) await read();
    const seen = await readOften();
    expect(seen.toSorted(), String(schedule)).toEqual(orderIds);
    expect(await readSeldom(), String(schedule)).toEqual(seen);
  }
});
