import { runQuery } from '@order-gateway/postgres/testing/run-query';
import postgres from 'postgres';
import { expect, onTestFinished, test, vi } from 'vitest';
import { runGateway, scrape } from '../../helpers/running-gateway.ts';

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

test('the gateway is not ready while authentication cannot read client secrets', async () => {
  const gateway = await runGateway();
  const ready = () => fetch(`${gateway.url}/health/ready`).then(({ status }) => status);
  expect(await ready()).toBe(200);
  await runQuery(gateway.databaseUrl, 'alter table client_secrets rename column secret_hash to digest');
  await expect.poll(ready).toBe(503);
  await runQuery(gateway.databaseUrl, 'alter table client_secrets rename column digest to secret_hash');
  await expect.poll(ready).toBe(200);
});

test('a gateway whose clock is an hour ahead logs it at its start and shows it in its metrics, but is ready', async () => {
  const { now } = Date;
  vi.spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000);
  onTestFinished(() => void vi.restoreAllMocks());
  const gateway = await runGateway();
  expect(gateway.errors).toMatchObject([{ level: 'error', msg: 'the clock is wrong' }]);
  expect(gateway.errors[0]?.clock_offset_ms).toBeGreaterThan(3_500_000);
  const offset = /^order_gateway_clock_offset_seconds (\S+)$/m.exec(await scrape(gateway))?.[1];
  expect(Number(offset)).toBeGreaterThan(3_500);
  await expect.poll(async () => (await fetch(`${gateway.url}/health/ready`)).status).toBe(200);
});
