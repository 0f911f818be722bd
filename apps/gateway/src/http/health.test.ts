import { fastify } from 'fastify';
import { expect, test } from 'vitest';
import { healthRoutes } from './health.ts';

test('however many ask at once, the database is asked once, and anew by who comes later', async () => {
  const app = fastify();
  const asked: ((isReady: boolean) => void)[] = [];
  healthRoutes(app, { isReady: () => new Promise((resolve) => asked.push(resolve)) });
  const ask = () => app.inject('/health/ready').then(({ statusCode }) => statusCode);

  const first = Promise.all(Array.from({ length: 50 }, ask));
  await app.inject('/health/live');
  expect(asked.length).toBe(1);
  asked[0]?.(false);
  expect(new Set(await first)).toEqual(new Set([503]));

  const later = ask();
  await app.inject('/health/live');
  asked[1]?.(true);
  expect(await later).toBe(200);
});

test('responses are not cached', async () => {
  const app = fastify();
  healthRoutes(app, { isReady: async () => false });
  for (const path of ['/health/live', '/health/ready']) {
    expect((await app.inject(path)).headers).toMatchObject({ 'cache-control': 'no-store' });
  }
});
