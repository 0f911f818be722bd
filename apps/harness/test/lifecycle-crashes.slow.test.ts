import { expect, test } from 'vitest';
import { auditErrors, formatAudit } from '../src/audit/audit.ts';
import { crashLifecycle } from './lifecycle-crashes.ts';

test('10,000 orders, 20 killed gateways and 5 killed PostgreSQLs: no change is undone, every event is delivered', async () => {
  const kills = { gatewayKills: 20, postgresKills: 5, shownBetweenKills: 400 };
  const ends = { orders: 10_000, changes: 2_000 };
  const { recorder, audit } = await crashLifecycle({ seed: 20_261_123, rate: 150, ...ends, ...kills });
  const outcomes = [...recorder.outcomes].map(([outcome, { count }]) => `${outcome} ${count}`).join(', ');
  process.stdout.write(`${formatAudit(audit)}${recorder.sent} calls: ${outcomes}\n`);
  expect(auditErrors(audit)).toBe(0);
  expect(audit.acknowledged).toBeGreaterThanOrEqual(10_000);
  expect(audit.changes).toBeGreaterThanOrEqual(2_000);
  expect(recorder.errors).toBeGreaterThan(0);
});
