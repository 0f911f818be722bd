import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { auditErrors } from '../../src/audit/audit.ts';
import { runPayments } from './run-payments.ts';

test('two checkout systems never pay an order twice while gateways and the server are killed', async () => {
  const seed = Number(process.env.FAULTS_SEED ?? randomInt(2 ** 31));
  const plan = { seed, orders: 200, gatewayKills: 2, serverKills: 1, waitsForLeases: false };
  process.stdout.write(`FAULTS_SEED=${seed} repeats the calls and the faults\n`);
  const { audit, violations, figures } = await runPayments(plan);
  expect([...violations, ...audit.examples]).toEqual([]);
  expect(auditErrors(audit)).toBe(0);
  expect(figures).toMatchObject({ orders: 200, kills: 3 });
  for (const name of ['paid', 'cancelled', 'refused', 'leases']) expect([name, figures[name]]).not.toEqual([name, 0]);
});
