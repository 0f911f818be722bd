import { parseTrustProxy } from '@order-gateway/runtime/remote-address';
import { fastify } from 'fastify';
import { expect, test } from 'vitest';
import { limitRequests } from './limit-requests.ts';

// The addresses are public, because private and reserved ones have no separate limit.

/** Returns the function that counts the requests that are served, out of 1,000 that arrive at the same time. */
function setUp(trustProxy?: string) {
  const app = fastify();
  limitRequests(app, trustProxy === undefined ? undefined : parseTrustProxy(trustProxy), () => 5_000);
  for (const path of ['/pay/x', '/back/x', '/hooks/x', '/health/ready']) app.get(path, async () => 'served');
  return async (remoteAddress: string, { url = '/pay/x', forwarded = '' } = {}) => {
    const statuses: number[] = [];
    for (let count = 0; count < 400; count += 1) {
      const headers = forwarded === '' ? {} : { 'x-forwarded-for': forwarded.replace('N', `${count % 200}`) };
      const { statusCode, headers: received } = await app.inject({ url, remoteAddress, headers });
      if (statusCode !== 200) expect([statusCode, received['retry-after']]).toEqual([429, '1']);
      statuses.push(statusCode);
    }
    return statuses.filter((status) => status === 200).length;
  };
}

test.each(['/pay/x', '/back/x', '/hooks/x'])(
  '%s limits the requests of each network and of all networks together',
  async (url) => {
    const served = setUp();
    expect(await served('9.9.9.7', { url })).toBe(100);
    expect(await served('2a00:1450::1', { url })).toBe(100);
    expect(await served('2a00:1450::2', { url })).toBe(0);
    expect(await served('9.9.9.8', { url })).toBe(100);
    expect(await served('9.9.9.9', { url })).toBe(0);
    expect(await served('9.9.9.9', { url: '/health/ready' })).toBe(400);
  },
);

test('the address in X-Forwarded-For counts only behind a trusted proxy', async () => {
  expect(await setUp()('9.9.9.7', { forwarded: '8.8.8.N' })).toBe(100);
  expect(await setUp('10.0.0.1')('10.0.0.1', { forwarded: '8.8.8.7' })).toBe(100);
  expect(await setUp('10.0.0.1')('10.0.0.1', { forwarded: '8.8.8.N' })).toBe(300);
  expect(await setUp()('10.0.0.1')).toBe(300);
});
