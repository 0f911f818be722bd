import { randomBytes } from 'node:crypto';
import type { AccountId } from '@order-gateway/domain/accounts';
import type { NewOrder, Order, OrderStore } from '@order-gateway/domain/orders';
import {
  checkoutOf,
  type OpenedOrderStore,
} from '@order-gateway/domain/testing/order-store-contract/order-store-steps';
import { eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import type postgres from 'postgres';
import { openOrderStore } from '../src/order-store.ts';
import type { CreationOptions } from '../src/orders/create/order-creations.ts';
import { accounts, orders } from '../src/schema.ts';
import { testPatience } from './patience.ts';

/** Creates a merchant, and returns its id. */
export async function createMerchantId(sql: postgres.Sql, name = 'Shop'): Promise<AccountId> {
  const clientId = `app_${randomBytes(12).toString('hex')}`;
  const insertion = drizzle({ client: sql }).insert(accounts).values({ name, clientId });
  const rows = await insertion.returning({ id: accounts.id });
  return rows[0]?.id as AccountId;
}

/**
 * Creates an order, which must be new, and returns it with its id. If a slow server exceeds the time limits of the
 * store, the order is sent again, and may then exist.
 */
export async function createOrder(store: OrderStore, order: NewOrder, mayExist = false): Promise<Order> {
  const outcome = await store.create(order, 20_000);
  if (outcome.kind === 'unavailable') return createOrder(store, order, true);
  if (outcome.kind === 'created' || (mayExist && outcome.kind === 'exists')) return outcome.order;
  throw new Error(outcome.kind);
}

/** Returns the number of a merchant's orders. */
export function countOrders(sql: postgres.Sql, merchantId: AccountId): Promise<number> {
  return drizzle({ client: sql }).$count(orders, eq(orders.merchantId, merchantId));
}

/** Opens a store on a migrated database for the tests that every order store must pass. */
export function openContractStore({
  sql,
  ...options
}: CreationOptions & { readonly sql: postgres.Sql }): OpenedOrderStore {
  const store = openOrderStore({ patience: testPatience, ...options });
  const names = new Map<AccountId, string>();
  const createNamedMerchant = async () => {
    const name = `Shop ${names.size + 1} 'é' 店`;
    const merchantId = await createMerchantId(sql, name);
    names.set(merchantId, name);
    await sql`insert into accounts (id, name, client_id, kind) overriding system value
      values (${checkoutOf(merchantId)}, 'Checkout', ${`chk_${merchantId}`}, 'checkout')`;
    return merchantId;
  };
  return {
    store,
    merchantIds: async () => [await createNamedMerchant(), await createNamedMerchant()],
    countOrders: (merchantId) => countOrders(sql, merchantId),
    nameOf: (merchantId) => names.get(merchantId) ?? '',
    close: () => store.close(),
  };
}
