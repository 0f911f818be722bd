import { fastify } from 'fastify';
import { expect, test } from 'vitest';
import { healthRoutes } from './health.ts';

test.each([
  [true, 200],
  [false, 503],
])('readiness of %s responds %d, and no response is cached', async (isReady, status) => {
  const app = fastify();
  healthRoutes(app, { isReady: async () => isReady });
  const live = await app.inject('/health/live');
  const ready = await app.inject('/health/ready');
  expect([live.statusCode, ready.statusCode]).toEqual([200, status]);
  for (const { headers } of [live, ready]) expect(headers).toMatchObject({ 'cache-control': 'no-store' });
});
