import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { runGateway } from '../helpers/running-gateway.ts';

test('the gateway is not ready while the table of orders is locked, and logs this once, with the reason', async () => {
  const gateway = await runGateway();
  const ready = () => fetch(`${gateway.url}/health/ready`).then(({ status }) => status);
  expect(await ready()).toBe(200);
  const locking = postgres(gateway.databaseUrl, { max: 1 });
  onTestFinished(() => locking.end());
  await locking.unsafe('begin; lock table orders');
  await expect.poll(ready).toBe(503);
  await expect.poll(ready, { interval: 1_100 }).toBe(503);
  await locking.unsafe('rollback');
  await expect.poll(ready).toBe(200);
  const reason = 'timed out waiting for a lock that another database session holds';
  // Becoming ready again is not an error. A background job that waited for the lock may have logged a separate error.
  const notReady = gateway.outages.filter(({ msg }) => msg === 'not ready for orders');
  expect(notReady).toMatchObject([{ level: 'error', reason }]);
});
