import { expect, test } from 'vitest';
import { runKills } from './run-kills.ts';

test('2,000 payments survive the deaths of the checkout, the gateway and PostgreSQL', async () => {
  const { outcomes, faults, differences } = await runKills({
    payments: 1_998,
    customersAtOnce: 20,
    paymentsPerKill: 40,
  });
  expect(faults).toEqual([]);
  expect(differences).toEqual([]);
  expect(outcomes.recorded + outcomes.released + outcomes.refunded).toBe(1_776);
});
