import { createInMemoryOrderStore } from '../../testing/in-memory-order-store.ts';
import { describeOrderStore } from '../../testing/order-store-contract.ts';
import type { AccountId } from '../accounts/account.ts';

describeOrderStore('the in-memory order store', async () => {
  const nameOf = (merchantId: AccountId) => `Shop ${merchantId}`;
  const store = createInMemoryOrderStore(nameOf);
  let merchants = 0;
  const nextMerchantId = () => {
    merchants += 1;
    return merchants as AccountId;
  };
  return {
    store,
    merchantIds: async () => [nextMerchantId(), nextMerchantId()],
    countOrders: async (merchantId) => store.ordersOf(merchantId).length,
    nameOf,
    close: async () => {},
  };
});
