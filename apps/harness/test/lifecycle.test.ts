import { expect, test } from 'vitest';
import { auditErrors } from '../src/audit/audit.ts';
import { crashLifecycle } from './lifecycle-crashes.ts';

test('killed gateways and a killed PostgreSQL undo no change of an order, and every event is delivered', async () => {
  const kills = { gatewayKills: 2, postgresKills: 1, shownBetweenKills: 80 };
  const ends = { orders: 200, changes: 40 };
  const { recorder, audit } = await crashLifecycle({ seed: 20_261_122, rate: 120, ...ends, ...kills });
  expect(audit.examples).toEqual([]);
  expect(auditErrors(audit)).toBe(0);
  expect(audit).toMatchObject({ lost: 0, undone: 0, backwards: 0, illegal: 0, undelivered: 0 });
  expect(audit.acknowledged).toBeGreaterThanOrEqual(200);
  expect(audit.changes).toBeGreaterThanOrEqual(40);
  // The kills were felt.
  expect(recorder.errors).toBeGreaterThan(0);
});
