import { randomInt } from 'node:crypto';
import { expect, test } from 'vitest';
import { auditErrors } from '../../src/audit/audit.ts';
import { runRefunds } from './run-refunds.ts';

test('eight callers never refund more than was paid while gateways and the server are killed', async () => {
  const seed = Number(process.env.FAULTS_SEED ?? randomInt(2 ** 31));
  process.stdout.write(`FAULTS_SEED=${seed} repeats the calls and the faults\n`);
  const { audit, violations, figures } = await runRefunds({ seed, orders: 15, gatewayKills: 2, serverKills: 1 });
  expect([...violations, ...audit.examples]).toEqual([]);
  expect(auditErrors(audit)).toBe(0);
  expect(figures).toMatchObject({ orders: 15, kills: 3 });
  for (const name of ['refunds_refused', 'refunded', 'refund_failed', 'disputed', 'dispute_closed'])
    expect([name, figures[name]]).not.toEqual([name, 0]);
});
