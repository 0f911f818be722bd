import { type Order, parseOrder } from '@order-gateway/domain/orders';
import { loadFixtures } from '@order-gateway/fixtures';
import { expect, test } from 'vitest';
import { createOrders, type SentOrder } from '../workload/orders.ts';
import { acknowledgedOrder, storedOrder } from './audit.ts';
import { type AuditedOrder, compareOrders } from './compare-orders.ts';

const { validOrder } = await loadFixtures();
const orderOf = createOrders(validOrder, { seed: 7, merchants: 2 });
const createdAtMs = Date.parse('2026-11-20T21:01:42.172Z');

function entry(number: number, changes = {}) {
  const ids = { service_order_id: number + 1, order_token: `token${number}` };
  const created = { ...ids, created_at: '2026-11-20T21:01:42.172+00:00', ...changes };
  return { number, created };
}

/** Returns the row of an order. */
function storedRow(number: number, { fields }: Pick<SentOrder, 'fields'>): Order {
  const parsed = parseOrder({ ...fields, order_amount: Number(fields.order_amount) });
  if (!parsed.ok) throw new Error('the order is invalid');
  const assigned = { serviceOrderId: number + 1, orderToken: `token${number}`, createdAtMs, orderStatus: 'UN_PAID' };
  return { ...assigned, fields: parsed.value.fields } as Order;
}

/** Returns the order with this number as the audit reads it from the database. */
function stored(
  number: number,
  changes: Partial<AuditedOrder['members']> = {},
  merchantOffset = 0,
  sharedFields: readonly string[] = [],
) {
  const order = orderOf(number);
  const audited = storedOrder(order.merchant + merchantOffset, { order: storedRow(number, order), sharedFields });
  return { ...audited, members: { ...audited.members, ...changes } as AuditedOrder['members'] };
}

const expectedOf = ({ created, number }: ReturnType<typeof entry>) => acknowledgedOrder(created, orderOf(number));

test('an order stored as acknowledged is not an error, and neither is one without an acknowledgement', async () => {
  const counts = await compareOrders([entry(1), entry(2), entry(1)], expectedOf, [stored(2), stored(3), stored(1)]);
  expect(counts).toEqual({
    acknowledged: 2,
    stored: 3,
    unacknowledged: 1,
    lost: 0,
    duplicated: 0,
    changed: 0,
    examples: [],
  });
});

test.for(Object.keys(stored(1).members).filter((name) => name !== 'order_id'))(
  'a changed %s is found',
  async (name) => {
    const counts = await compareOrders([entry(1)], expectedOf, [stored(1, { [name]: 'something else' })]);
    const examples = [`load-7-1: stored with a different ${name}`];
    expect(counts).toMatchObject({ lost: 0, duplicated: 0, changed: 1, examples });
  },
);

test('changed metadata is found', async () => {
  const withMetadata = (cart: string) => {
    const order = stored(1);
    return { ...order, members: { ...order.members, metadata: JSON.stringify({ cart }) } };
  };
  const expected = () => acknowledgedOrder(entry(1).created, { ...orderOf(1), metadata: { cart: '7' } });
  expect(await compareOrders([entry(1)], expected, [withMetadata('7')])).toMatchObject({ changed: 0 });
  expect(await compareOrders([entry(1)], expected, [withMetadata('8')])).toMatchObject({ changed: 1 });
});

test('every member that is sent or returned is compared', () => {
  const sent = Object.keys(orderOf(1).fields);
  expect(sent).toHaveLength(16);
  const returned = Object.keys(entry(1).created);
  expect(Object.keys(stored(1).members).toSorted()).toEqual([...sent, ...returned].toSorted());
});

test('an additional field is compared unless it is empty, and every other field even if it is empty', () => {
  const namesWith = (fields: Readonly<Record<string, string>>) => {
    const order = { ...orderOf(1), fields: { ...orderOf(1).fields, ...fields } };
    return Object.keys(storedOrder(0, { order: storedRow(1, order), sharedFields: [] }).members);
  };
  expect(namesWith({ customer_locale: 'nl-BE' })).toContain('customer_locale');
  expect(namesWith({ customer_locale: '' })).not.toContain('customer_locale');
  expect(namesWith({ customer_address_line2: '' })).toContain('customer_address_line2');
});

test.for([
  ['lost', [entry(1), entry(2)], [stored(1)]],
  ['lost', [entry(1)], []],
  ['changed', [entry(1)], [stored(1, {}, 1)]],
  ['changed', [entry(1), entry(1, { order_token: 'another' })], [stored(1)]],
  ['changed', [entry(1), entry(1, { created_at: 'later' })], [stored(1)]],
  ['duplicated', [entry(1)], [stored(1), stored(1)]],
  ['duplicated', [], [stored(1), stored(1, { order_token: 'another', service_order_id: 9 }, 1)]],
  ['duplicated', [], [stored(1), stored(2, {}, 0, ['order_token', 'service_order_id'])]],
] as const)('an order that is %s is counted once, and only under this error', async ([kind, entries, orders]) => {
  const counts = await compareOrders(entries, expectedOf, orders);
  const { lost, duplicated, changed } = counts;
  expect({ lost, duplicated, changed }).toEqual({ lost: 0, duplicated: 0, changed: 0, [kind]: 1 });
  expect(counts.examples).toHaveLength(1);
});
