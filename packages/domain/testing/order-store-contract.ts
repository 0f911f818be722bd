import { afterAll, beforeAll, describe } from 'vitest';
import { describeChanges } from './order-store-contract/changes.ts';
import { describeCreation } from './order-store-contract/creation.ts';
import { describeEvents } from './order-store-contract/events.ts';
import { describeLists } from './order-store-contract/lists.ts';
import { describeLookups } from './order-store-contract/lookups.ts';
import { type OpenedOrderStore, orderStoreSteps } from './order-store-contract/order-store-steps.ts';
import { describePaymentAttempts } from './order-store-contract/payment-attempts.ts';
import { describeRefunds } from './order-store-contract/refunds.ts';
import { describeRefusedPayments } from './order-store-contract/refused-payments.ts';

/** Defines the tests that every `OrderStore` must pass. */
export function describeOrderStore(name: string, open: () => Promise<OpenedOrderStore>): void {
  describe(name, () => {
    let opened: OpenedOrderStore;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened?.close());

    const steps = orderStoreSteps(() => opened);
    describeCreation(steps);
    describeLookups(steps);
    describeChanges(steps);
    describeRefusedPayments(steps);
    describeRefunds(steps);
    describePaymentAttempts(steps);
    describeLists(steps);
    describeEvents(steps);
  });
}
