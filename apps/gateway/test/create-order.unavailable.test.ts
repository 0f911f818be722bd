import type { OrderStore } from '@gateway/domain/order-store';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { afterEach, expect, test } from 'vitest';
import type { GatewayDeps } from '../src/gateway-deps.ts';
import { createHttpServer } from '../src/http/server.ts';
import { credentials, fixedDeps } from './fixed-deps.ts';
import { createMemoryLogger } from './memory-logger.ts';

let close: () => Promise<void> = async () => {};
afterEach(() => close());

/** The `detail` of the error that a gateway responds with, with some of its dependencies replaced. */
async function detailOf(path: string, body: object | undefined, replaced: Partial<GatewayDeps>): Promise<string> {
  const server = createHttpServer({ ...fixedDeps(createMemoryLogger().logger), ...replaced }, [], '');
  close = server.close;
  const port = await server.listen(0, '127.0.0.1');
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      'content-type': 'application/json',
      'x-client-id': credentials.clientId,
      'x-client-secret': credentials.clientSecret,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return String(Object(await response.json()).detail);
}

function storeThatIs(kind: 'unavailable' | 'deadline_exceeded' | 'overloaded'): OrderStore {
  const fail = async () => ({ kind }) as const;
  return {
    ...{ create: fail, change: fail, list: fail, listEvents: fail },
    ...{ findByOrderId: fail, findByServiceOrderId: fail, findByToken: fail, findForPage: fail },
  };
}

test.each(['unavailable', 'deadline_exceeded'] as const)(
  'POST /order: %s of the store says that the order may exist',
  async (kind) => {
    expect(await detailOf('/order', validOrderInput(), { store: storeThatIs(kind) })).toContain(
      'may have been created',
    );
  },
);

test('POST /order: overloaded says that nothing was stored', async () => {
  expect(await detailOf('/order', validOrderInput(), { store: storeThatIs('overloaded') })).toContain(
    'Nothing was stored',
  );
});

test.each(['unavailable', 'deadline_exceeded'] as const)('GET /order: %s does not mention creating', async (kind) => {
  expect(await detailOf('/order/A-1', undefined, { store: storeThatIs(kind) })).not.toMatch(/creat|order_id/);
});

test('GET /order: not_found names the id that was looked up', async () => {
  expect(await detailOf('/order/A-1', undefined, {})).toBe('You have no order with this order_id.');
});
