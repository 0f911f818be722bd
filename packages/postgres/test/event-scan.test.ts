import type { MerchantId } from '@gateway/domain/merchant';
import { expect, test } from 'vitest';
import { scanEvents } from '../src/event-scan.ts';
import { useTestDatabase } from '../testing/test-database.ts';

const [shop, neighbour] = [1, 2] as [MerchantId, MerchantId];

const database = useTestDatabase();

test('returns the events about orders with the prefix over several pages in the order of the feed, and no others', async () => {
  const { sql } = database;
  await sql`insert into merchants (name, client_id) values ('Shop', 'app_1'), ('Neighbour', 'app_2')`;
  const insert = (merchantId: MerchantId, prefix: string, count: number) => sql`
    insert into events (merchant_id, transaction_id, event_id, type, created_at, order_id)
    select ${merchantId}, (case when n % 2 = 0 then 9 else 10 end)::text::xid8, 'evt_' || ${prefix} || n,
      case when n % 2 = 0 then 'order.paid' else 'order.cancelled' end, now(), ${prefix} || n
    from generate_series(1, ${count}) n`;
  await insert(shop, 'run_%-', 5_001);
  for (const prefix of ['run_x-', 'RUN_%-', 'a run_%-']) await insert(shop, prefix, 2);
  await insert(neighbour, 'run_%-', 2);

  const found = await Array.fromAsync(scanEvents(database.url, { merchantId: shop, orderIdPrefix: 'run_%-' }));
  const expected = Array.from({ length: 5_001 }, (_, index) => index + 1)
    .map((n) => ({ even: n % 2 === 0, eventId: `evt_run_%-${n}`, orderId: `run_%-${n}` }))
    // The transaction's number decides first, and 9 comes before 10.
    .sort((a, b) => Number(b.even) - Number(a.even) || (a.eventId < b.eventId ? -1 : 1))
    .map(({ even, eventId, orderId }) => ({ eventId, type: even ? 'order.paid' : 'order.cancelled', orderId }));
  expect(found.map(({ eventId, type, orderId }) => ({ eventId, type, orderId }))).toEqual(expected);
});
