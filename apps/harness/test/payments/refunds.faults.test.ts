import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { auditErrors } from '../../src/audit/audit.ts';
import { runRefunds } from './run-refunds.ts';

const { FAULTS_SEED = randomInt(2 ** 31), FAULTS_PERCENT = 100 } = process.env;

test('refunds of 1,000 orders, each by eight callers, never exceed the payment in any response, and each is stored and announced once', async () => {
  const times = (count: number) => Math.ceil((count * Number(FAULTS_PERCENT)) / 100);
  const seed = Number(FAULTS_SEED);
  process.stdout.write(`FAULTS_SEED=${seed} repeats the calls and the faults\n`);
  const plan = { seed, orders: times(1_000), gatewayKills: times(20), serverKills: times(5) };
  const { audit, violations, figures } = await runRefunds(plan);
  process.stdout.write(`${JSON.stringify(figures)}\n`);
  expect([...violations, ...audit.examples]).toEqual([]);
  expect(auditErrors(audit)).toBe(0);
  for (const name of ['refunds_refused', 'refunded', 'refund_failed', 'disputed', 'dispute_closed'])
    expect([name, figures[name]]).not.toEqual([name, 0]);
});
