import { fastify } from 'fastify';
import { expect, test } from 'vitest';
import { healthRoutes } from './health.ts';

test.each([
  [true, 200, 'ok'],
  [false, 503, 'unavailable'],
])('ready: %j responds with %d', async (isReady, code, status) => {
  const app = fastify();
  healthRoutes(app, { isReady: async () => isReady });
  const response = await app.inject('/health/ready');
  expect([response.statusCode, response.json()]).toEqual([code, { status }]);
  expect((await app.inject('/health/live')).statusCode).toBe(200);
});

test('responses are not cached', async () => {
  const app = fastify();
  healthRoutes(app, { isReady: async () => false });
  for (const path of ['/health/live', '/health/ready']) {
    expect((await app.inject(path)).headers).toMatchObject({ 'cache-control': 'no-store' });
  }
});
