import { randomBytes } from 'node:crypto';
import { createClientId, createClientSecret } from '@order-gateway/domain/accounts';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { unauthenticatedLimits } from '../../src/limits.ts';
import { ordinaryCall, sendCall } from '../helpers/grpc/grpc-call.ts';
import { useSession } from '../helpers/grpc/grpc-servers.ts';
import { firstBytes } from '../helpers/raw-http.ts';
import { runGateway, useGateway } from '../helpers/running-gateway.ts';
import { callJson, credentialHeaders, postOrder, readOrder } from '../helpers/send-order.ts';

// With these limits, no page gets a slot, and every failed authentication is above the limit.
const limits = { ...unauthenticatedLimits, inFlightMax: 0, waitingTimeoutMs: 50, rejectedPerSecond: 0, pauseMs: 50 };
const gateway = useGateway({ unauthenticatedLimits: limits });

const unknownClient = () => ({
  url: gateway.url,
  credentials: { clientId: createClientId(randomBytes), clientSecret: createClientSecret(randomBytes) },
});

test('pages above their limit are rate_limited, as a page or as JSON; health checks and merchants are not', async () => {
  const created = await postOrder(gateway);
  expect(created.status).toBe(201);
  const { order_token } = await readOrder(created);
  const page = await fetch(`${gateway.url}/payment/${order_token}`, { headers: { accept: 'text/html' } });
  expect(page.status).toBe(429);
  expect(page.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  for (const path of [`/payment/${order_token}/simulate`, '/docs', '/openapi.json', '/']) {
    const response = await fetch(`${gateway.url}${path}`, { headers: { accept: 'application/json' } });
    expect([path, response.status, Object(await response.json()).code]).toEqual([path, 429, 'rate_limited']);
  }
  expect((await fetch(`${gateway.url}/health/ready`)).status).toBe(200);
  expect((await callJson(gateway, 'GET', `/order/${validOrderInput().order_id}`)).status).toBe(200);
});

test('a form that arrives slowly takes no slot that a page needs', async () => {
  const served = await runGateway({ unauthenticatedLimits: { ...unauthenticatedLimits, inFlightMax: 1 } });
  const { order_token } = await readOrder(await postOrder(served));
  const head = `POST /payment/${order_token}/simulate HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n`;
  await firstBytes(served, `${head}content-type: application/x-www-form-urlencoded\r\nexpect: 100-continue\r\n\r\n`);
  expect((await fetch(`${served.url}/payment/${order_token}`)).status).toBe(200);
});

test('failed authentications above their limit are rate_limited, in JSON and gRPC', async () => {
  const response = await postOrder(unknownClient());
  expect(response.status).toBe(429);
  expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
  const session = useSession(gateway.grpcPort);
  const headers = { 'content-type': 'application/grpc', ...credentialHeaders(unknownClient().credentials) };
  const { trailers } = await sendCall(session, { ...ordinaryCall('any'), headers });
  expect(trailers['grpc-status']).toBe('8');
});

test('while many authentications fail, merchants are served, even on their first call', async () => {
  const flood = Array.from({ length: 200 }, () => postOrder(unknownClient()));
  const served = await runGateway({ unauthenticatedLimits: { ...unauthenticatedLimits, rejectedPerSecond: 0 } });
  const secondFlood = Array.from({ length: 50 }, () => postOrder({ ...unknownClient(), url: served.url }));
  expect((await postOrder(served)).status).toBe(201);
  expect((await postOrder(gateway, validOrderInput({ order_id: 'beside' }))).status).toBe(201);
  for (const { status } of await Promise.all([...flood, ...secondFlood])) expect(status).toBe(429);
});
