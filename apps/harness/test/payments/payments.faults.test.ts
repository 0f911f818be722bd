import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { auditErrors } from '../../src/audit/audit.ts';
import { runPayments } from './run-payments.ts';

const { FAULTS_SEED = randomInt(2 ** 31), FAULTS_PERCENT = 100 } = process.env;

test('payments never pay one of 10,000 orders twice, no order is cancelled or expires during a lease, and each refused payment has one event', async () => {
  const share = Number(FAULTS_PERCENT) / 100;
  const times = (count: number) => Math.ceil(count * share);
  const seed = Number(FAULTS_SEED);
  process.stdout.write(`FAULTS_SEED=${seed} repeats the calls and the faults\n`);
  const plan = { seed, orders: times(10_000), gatewayKills: times(20), serverKills: times(5), waitsForLeases: true };
  const { audit, violations, figures } = await runPayments(plan);
  expect([...violations, ...audit.examples]).toEqual([]);
  expect(auditErrors(audit)).toBe(0);
  for (const name of ['paid', 'cancelled', 'expired', 'refused', 'leases'])
    expect([name, figures[name]]).not.toEqual([name, 0]);
});
