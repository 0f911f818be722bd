import { afterAll } from 'vitest';
import { type OrderStoreOptions, openOrderStore, type PostgresOrderStore } from '../src/order-store.ts';

/** Returns a function that opens order stores on a database. All are closed after the tests of the file. */
export function useOrderStores(database: Pick<OrderStoreOptions, 'url'>) {
  const stores: PostgresOrderStore[] = [];
  afterAll(() => Promise.all(stores.map((store) => store.close())));
  return (options: Partial<OrderStoreOptions> = {}): PostgresOrderStore => {
    const store = openOrderStore({ url: database.url, ...options });
    stores.push(store);
    return store;
  };
}
