import type { AccountId } from '@order-gateway/domain/accounts';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import type postgres from 'postgres';
import { openOrderStore } from '../src/order-store.ts';
import { testPatience } from './patience.ts';

/** Creates merchants, each with one cancelled order. */
export async function createMerchantsWithOrder(url: string, sql: postgres.Sql, count: number): Promise<AccountId[]> {
  const rows = await sql`insert into accounts (name, client_id)
    select 'Shop', 'app_' || substr(md5(random()::text), 1, 24) from generate_series(1, ${count}) returning id::int`;
  const merchantIds = rows.map(({ id }) => id as AccountId);
  const store = openOrderStore({ url, patience: testPatience });
  try {
    await Promise.all(merchantIds.map((merchantId) => store.create(sampleOrder(merchantId), 20_000)));
  } finally {
    await store.close();
  }
  await sql`update orders set order_status = 'CANCELLED', cancelled_at = now() where merchant_id = any(${merchantIds})`;
  return merchantIds;
}

/**
 * Stores events of each merchant's order in one transaction, as changes of orders do. They are due for delivery to each
 * endpoint, or to a missing endpoint if the merchant has none. Returns their ids.
 */
export async function storeEvents(
  sql: postgres.Sql,
  merchantIds: readonly AccountId[],
  eventsPerMerchant: number,
): Promise<string[]> {
  const rows = await sql`
    with stored as (
      insert into events (merchant_id, event_id, type, created_at, order_id)
      select merchant_id, 'evt_' || to_hex((extract(epoch from now()) * 1000000)::bigint) || left(md5(random()::text), 19),
        'order.cancelled', now(), order_id
      from orders cross join generate_series(1, ${eventsPerMerchant}) where merchant_id = any(${[...merchantIds]})
      returning merchant_id, event_id
    ), queued as (
      insert into webhook_deliveries (merchant_id, endpoint_id, event_id, attempts, next_attempt_at)
      select merchant_id, coalesce(endpoint_id, 'none'), event_id, 0, now() - interval '1 ms'
      from stored left join webhook_endpoints using (merchant_id)
    )
    select event_id from stored`;
  return rows.map(({ event_id }) => event_id);
}
