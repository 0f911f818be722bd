import { expect, test } from 'vitest';
import { runKills } from './run-kills.ts';

// The short form of `kills.faults.test.ts`.
test('payments survive the death of the checkout, the gateway and PostgreSQL', async () => {
  const { outcomes, faults, killed, differences, created } = await runKills({
    payments: 63,
    customersAtOnce: 6,
    paymentsPerKill: 20,
  });
  expect(faults).toEqual([]);
  expect(differences).toEqual([]);
  expect(killed).toBe(3);
  expect(created).toEqual({ whileHung: 201, whileDead: 201 });
  // 1 of 9 customers does not pay. A cancelled order releases its payment.
  expect(outcomes.recorded + outcomes.released + outcomes.refunded).toBe(56);
  expect(outcomes.recorded).toBeGreaterThanOrEqual(49);
});
