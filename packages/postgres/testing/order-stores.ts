import { afterAll } from 'vitest';
import { openOrderStore, type PostgresOrderStore } from '../src/order-store.ts';
import type { CreationOptions } from '../src/orders/create/order-creations.ts';
import { testPatience } from './patience.ts';

/** Returns a function that opens order stores on a database. All are closed after the tests of the file. */
export function useOrderStores(database: Pick<CreationOptions, 'url'>) {
  const stores: PostgresOrderStore[] = [];
  afterAll(() => Promise.all(stores.map((store) => store.close())));
  return (options: Partial<CreationOptions> = {}): PostgresOrderStore => {
    const store = openOrderStore({ url: database.url, patience: testPatience, ...options });
    stores.push(store);
    return store;
  };
}
