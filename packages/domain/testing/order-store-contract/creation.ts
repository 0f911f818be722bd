import naughtyStrings from 'big-list-of-naughty-strings/blns.json' with { type: 'json' };
import { expect, it } from 'vitest';
import { NumberText } from '../../src/money/money.ts';
import type { Order } from '../../src/orders/order.ts';
import { fieldRules } from '../../src/orders/order-field-rules.ts';
import { type OrderInput, parseOrder } from '../../src/orders/parse-order.ts';
import { sampleOrder, validOrderInput } from '../sample-orders.ts';
import { naughtyTexts } from './naughty-texts.ts';
import type { OrderStoreSteps } from './order-store-steps.ts';

/** Tests `create`. */
export function describeCreation({ opened, create }: OrderStoreSteps): void {
  it('create stores an order once and then returns the complete stored order', async () => {
    const [merchantId] = await opened().merchantIds();
    const first = sampleOrder(merchantId);
    const second = sampleOrder(merchantId, {
      order_amount: 7,
      order_currency: 'USD',
      service_type: 'DIGITAL',
      customer_address_line2: null,
      order_checksum: 'another',
    });

    expect(await create(first)).toStrictEqual({ kind: 'created' });
    expect(await create(first)).toStrictEqual({ kind: 'exists', order: first });
    expect(await create(second)).toStrictEqual({ kind: 'exists', order: first });
    expect(await create(first)).toStrictEqual({ kind: 'exists', order: first });
    expect(await opened().countOrders(merchantId)).toBe(1);
  });

  it.each<[string, Overrides]>([
    ...Object.entries(naughtyTexts).map(([name, text]): [string, Overrides] => [name, { fields: inFreeTexts(text) }]),
    [
      'line breaks, tabs and leading and trailing white space in a note',
      { fields: { order_note: '\n\t first\r\nsecond\rthird\n\n \t' } },
    ],
    ['every field at its maximum length, with code points of four bytes', { fields: longestFields }],
    ['an absent second address line (an empty text)', { fields: { customer_address_line2: undefined } }],
    ...['0.01', '0.10', '1.00', '100.50', '8191999999999.99', '9999999999999.98', '9999999999999.99'].map(
      (amount): [string, Overrides] => [`the amount ${amount}`, { fields: { order_amount: new NumberText(amount) } }],
    ),
    ...[1_795_208_502_000, 1_795_208_502_001, 1_795_208_502_172, 1_795_208_502_999, 4_102_444_800_001].map(
      (createdAtMs): [string, Overrides] => [`the milliseconds of the creation time ${createdAtMs}`, { createdAtMs }],
    ),
  ])('create stores %s unchanged', async (_, { fields, ...assigned }) => {
    const [merchantId] = await opened().merchantIds();
    const order = { ...sampleOrder(merchantId, fields), ...assigned };

    expect(await create(order)).toStrictEqual({ kind: 'created' });
    const again = sampleOrder(merchantId, { order_id: order.fields.order_id, order_note: 'Another order' });
    expect(await create(again)).toStrictEqual({ kind: 'exists', order });
  });

  it('create stores every text of the Big List of Naughty Strings in each field that accepts it', async () => {
    const [merchantId] = await opened().merchantIds();
    const orders = [...new Set<string>(naughtyStrings)].map((text, index) => {
      const fields = { order_id: text, ...inFreeTexts(text), return_url: text, order_checksum: text };
      const parsed = parseOrder(validOrderInput(fields));
      const rejected = parsed.ok ? [] : parsed.failure.map(({ field }): string => field);
      const accepted = Object.entries(fields).filter(([name]) => !rejected.includes(name));
      return sampleOrder(merchantId, { order_id: `naughty-${index}`, ...Object.fromEntries(accepted) });
    });
    expect(orders.filter(({ fields }) => !fields.order_id.startsWith('naughty-')).length).toBeGreaterThan(300);

    const created = await Promise.all(orders.map(create));
    expect(created).toStrictEqual(orders.map(() => ({ kind: 'created' })));
    const again = await Promise.all(orders.map((order) => create({ ...order })));
    expect(again).toStrictEqual(orders.map((order) => ({ kind: 'exists', order })));
  });

  it('create accepts the same order_id from two merchants', async () => {
    const [firstMerchant, secondMerchant] = await opened().merchantIds();
    const first = sampleOrder(firstMerchant, { order_note: 'Of one merchant' });
    const second = sampleOrder(secondMerchant, { order_note: 'Of the other merchant' });

    expect(await create(first)).toStrictEqual({ kind: 'created' });
    expect(await create(second)).toStrictEqual({ kind: 'created' });
    expect(await create(sampleOrder(firstMerchant))).toStrictEqual({ kind: 'exists', order: first });
    expect(await create(sampleOrder(secondMerchant))).toStrictEqual({ kind: 'exists', order: second });
    expect(await opened().countOrders(firstMerchant)).toBe(1);
    expect(await opened().countOrders(secondMerchant)).toBe(1);
  });

  it.each([
    ['differ in case', ['A', 'a', 'Ä', 'ä', 'ß', 'SS', 'İ', 'i', 'ı', 'I']],
    ['differ in leading or trailing white space', ['A', 'A ', 'A  ', ' A', 'A\u00a0', '\u2003A']],
    [
      'differ in normalization or in invisible characters',
      ['é', 'e\u0301', 'A\u200b', 'A\u200d', 'A', '\u200fA', '\u00c5', '\u212b'],
    ],
    ['look like other values', ['NULL', 'null', 'undefined', '0', '00', '0.0', '1', '01', '1e0', 'true', '{}', '""']],
  ])('create treats order_ids that %s as different', async (_, orderIds) => {
    const [merchantId] = await opened().merchantIds();
    const orders = orderIds.map((order_id) => sampleOrder(merchantId, { order_id, order_note: `Order ${order_id}` }));

    const created = await Promise.all(orders.map(create));
    expect(created.map(({ kind }) => kind)).toStrictEqual(orders.map(() => 'created'));
    const again = await Promise.all(orderIds.map((order_id) => create(sampleOrder(merchantId, { order_id }))));
    expect(again).toStrictEqual(orders.map((order) => ({ kind: 'exists', order })));
    expect(await opened().countOrders(merchantId)).toBe(orders.length);
  });

  it('create stores one of 50 concurrent orders with the same order_id and returns it to all calls', async () => {
    const [merchantId] = await opened().merchantIds();
    const orders = Array.from({ length: 50 }, (_, call) =>
      sampleOrder(merchantId, { order_id: 'concurrent', order_note: `Sent by call ${call}` }),
    );

    const outcomes = await Promise.all(orders.map(create));

    const stored = orders.filter((_, call) => outcomes[call]?.kind === 'created');
    expect(stored).toHaveLength(1);
    for (const [call, outcome] of outcomes.entries()) {
      expect(outcome).toStrictEqual(
        orders[call] === stored[0] ? { kind: 'created' } : { kind: 'exists', order: stored[0] },
      );
    }
    expect(await opened().countOrders(merchantId)).toBe(1);
  });

  it('in a mixed concurrent batch, each call of create returns the outcome of its own order', async () => {
    const merchantIds = await opened().merchantIds();
    // 180 calls for 90 orders, in a scattered sequence: 30 are sent once, 30 twice, 30 three times; both merchants use
    // the same order_ids.
    const orders = Array.from({ length: 180 }, (_, call) => {
      const shuffled = (call * 77) % 180;
      const orderIndex = shuffled < 90 ? shuffled : shuffled < 150 ? shuffled - 90 : shuffled - 150;
      const [even, odd] = merchantIds;
      return sampleOrder(orderIndex % 2 === 0 ? even : odd, {
        order_id: `mixed-${Math.floor(orderIndex / 2)}`,
        order_note: `Sent by call ${call}`,
      });
    });

    const outcomes = await Promise.all(orders.map(create));

    const keyOf = (order: Order) => `${order.merchantId} ${order.fields.order_id}`;
    const stored = new Map<string, Order>();
    for (const [call, order] of orders.entries()) {
      if (outcomes[call]?.kind !== 'created') continue;
      expect(stored.has(keyOf(order)), `${keyOf(order)} is created once`).toBe(false);
      stored.set(keyOf(order), order);
    }
    for (const [call, order] of orders.entries()) {
      const first = stored.get(keyOf(order));
      expect(outcomes[call]).toStrictEqual(first === order ? { kind: 'created' } : { kind: 'exists', order: first });
    }
    expect(await Promise.all(merchantIds.map((merchantId) => opened().countOrders(merchantId)))).toStrictEqual([
      45, 45,
    ]);
  });

  it('create assigns service order ids that are unique across merchants', async () => {
    const merchantIds = await opened().merchantIds();
    const orders = Array.from({ length: 300 }, (_, index) =>
      sampleOrder(merchantIds[index % 2 === 0 ? 0 : 1], { order_id: `numbered-${index}` }),
    );
    await Promise.all(orders.map(create));
    expect(new Set(orders.map(({ serviceOrderId }) => serviceOrderId)).size).toBe(300);
  });

  it.each([5_000, 4_999.5])('create accepts a timeout of %d ms', async (enoughMs) => {
    const [merchantId] = await opened().merchantIds();
    const orders = Array.from({ length: 20 }, (_, call) => sampleOrder(merchantId, { order_id: `timed-${call}` }));

    const outcomes = await Promise.all(orders.map((order) => opened().store.create(order, enoughMs)));

    expect(outcomes).toStrictEqual(orders.map(() => ({ kind: 'created', order: expect.anything() })));
  });
}

/** The values in which an order differs from a sample order. */
interface Overrides {
  readonly fields?: OrderInput;
  readonly createdAtMs?: number;
}

/** Returns the text as the value of every field that allows any visible text of 100 characters. */
function inFreeTexts(text: string): OrderInput {
  return {
    order_id: text,
    order_note: text,
    customer_name: text,
    customer_address_line1: text,
    customer_address_line2: text,
    customer_address_city: text,
    customer_address_state: text,
    customer_address_country: text,
  };
}

const longestFields: OrderInput = {
  order_id: '𝒪'.repeat(fieldRules.order_id.lengthMax),
  order_note: '𠜎'.repeat(fieldRules.order_note.lengthMax),
  customer_name: '😀'.repeat(fieldRules.customer_name.lengthMax),
  customer_email: `${'😀'.repeat(fieldRules.customer_email.lengthMax - '@example.com'.length)}@example.com`,
  customer_phone: '+31 (20) 555-0142 #7 x 12345678'.padEnd(fieldRules.customer_phone.lengthMax, '9'),
  customer_address_line1: '🏠'.repeat(fieldRules.customer_address_line1.lengthMax),
  customer_address_line2: '🏢'.repeat(fieldRules.customer_address_line2.lengthMax),
  customer_address_city: '🌆'.repeat(fieldRules.customer_address_city.lengthMax),
  customer_address_state: '🗺'.repeat(fieldRules.customer_address_state.lengthMax),
  customer_address_country: '🌍'.repeat(fieldRules.customer_address_country.lengthMax),
  customer_address_postal_code: '📮'.repeat(fieldRules.customer_address_postal_code.lengthMax),
  order_checksum: '~'.repeat(fieldRules.order_checksum.lengthMax),
  return_url: 'https://example.com/'.padEnd(fieldRules.return_url.lengthMax - 4, 'r').concat('😀😀😀😀'),
};
