import type { OrderFilter, OrderPosition } from '@gateway/domain/orders/order-store';
import { expect, test } from 'vitest';
import { openOrderStore } from '../../src/order-store.ts';
import { createMerchantId } from '../../testing/contract-store.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;
const ordersMade = 1_000_000;
const limit = 20;

const database = useTestDatabase();

/** Every thousandth order is paid, so that one status is rare. */
async function makeOrders(merchantId: number): Promise<void> {
  await database.sql`
    insert into orders
    select ${merchantId}, n, lpad(n::text, 32, '0'), case when n % 1000 = 0 then 'PAID' else 'UN_PAID' end,
      to_timestamp(1795000000 + n), 'order-' || n, 12.5, 'EUR', 'note', 'DIGITAL', 'name', 'a@example.com', '0205550142',
      'line 1', '', 'city', 'state', 'country', '1015', 'checksum', 'https://shop.example.com',
      null, case when n % 1000 = 0 then now() end, case when n % 1000 = 0 then 'p-' || n end, null
    from generate_series(1, ${ordersMade}::int) n`;
  await database.sql`analyze orders`;
}

test('a page of a million orders takes the same time wherever it stands, and however rare the status is', async () => {
  const merchantId = await createMerchantId(database.sql);
  await makeOrders(merchantId);
  const store = openOrderStore({ url: database.url });
  const positionOf = (page: number): OrderPosition => {
    const serviceOrderId = ordersMade - page * limit + 1;
    return { serviceOrderId, createdAtMs: (1_795_000_000 + serviceOrderId) * 1_000 };
  };
  const medianMs = async (filter: Partial<OrderFilter>): Promise<number> => {
    const times: number[] = [];
    for (let run = 0; run < 101; run += 1) {
      const startedAt = performance.now();
      const page = await store.list(merchantId, { limit, ...filter }, enoughMs);
      times.push(performance.now() - startedAt);
      expect(page).toMatchObject({ kind: 'found' });
    }
    return times.sort((a, b) => a - b)[50] ?? Number.NaN;
  };
  const medians = {
    'first page': await medianMs({}),
    '1,000th page': await medianMs({ after: positionOf(1_000) }),
    'last page': await medianMs({ after: positionOf(49_999) }),
    'rare status': await medianMs({ status: 'PAID' }),
    'status without orders': await medianMs({ status: 'EXPIRED' }),
  };
  process.stdout.write(`median ms of a page: ${JSON.stringify(medians)}\n`);
  await store.close();
  for (const ms of Object.values(medians)) expect(ms).toBeLessThan(10);
}, 300_000);
