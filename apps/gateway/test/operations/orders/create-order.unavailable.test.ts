import type { EventFeed } from '@order-gateway/domain/events';
import type { OrderStore } from '@order-gateway/domain/orders';
import { createInMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { expect, onTestFinished, test } from 'vitest';
import { credentials, type FixedDeps, fixedDeps } from '../../helpers/fixed-deps.ts';
import { createMemoryLogger } from '../../helpers/memory-logger.ts';
import { callJson, postOrder } from '../../helpers/send-order.ts';
import { httpServerOf } from '../../helpers/servers.ts';

/** Makes a call to a gateway with some dependencies replaced. Returns the `detail` of its error response. */
async function detailOf(method: 'GET' | 'POST', path: string, replaced: Partial<FixedDeps>): Promise<string> {
  const deps = { ...fixedDeps(createMemoryLogger().logger), ...replaced };
  const server = httpServerOf(deps);
  onTestFinished(server.close);
  const merchant = { url: `http://127.0.0.1:${await server.listen(0, '127.0.0.1')}`, credentials };
  if (method === 'GET') return (await callJson(merchant, method, path)).body.detail;
  return Object(await (await postOrder(merchant)).json()).detail;
}

function storeThatIs(kind: 'unavailable' | 'deadline_exceeded' | 'overloaded'): OrderStore & EventFeed {
  const fail = async () => ({ kind });
  return { ...createInMemoryOrderStore(), create: fail, findByOrderId: fail } as OrderStore & EventFeed;
}

test.each([
  ['unavailable', /may have been created/],
  ['deadline_exceeded', /may have been created/],
  ['overloaded', /Nothing was stored/],
] as const)('POST /order: the detail of %s says whether the order may have been stored', async (kind, detail) => {
  expect(await detailOf('POST', '/order', { store: storeThatIs(kind) })).toMatch(detail);
});

test.each(['unavailable', 'deadline_exceeded'] as const)(
  'GET /order: the detail of %s does not mention creating an order',
  async (kind) => {
    expect(await detailOf('GET', '/order/A-1', { store: storeThatIs(kind) })).not.toMatch(/creat|order_id/);
  },
);

test('GET /order: the detail of not_found names the field that was looked up', async () => {
  expect(await detailOf('GET', '/order/A-1', {})).toBe('You have no order with this order_id.');
});
