import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MerchantId } from '../src/merchant.ts';
import { NumberText } from '../src/money.ts';
import type { Order } from '../src/order.ts';
import { serviceOrderIdMax } from '../src/order-id.ts';
import type { CreateOutcome, OrderStore } from '../src/order-store.ts';
import { createOrderToken } from '../src/order-token.ts';
import { newOrder } from './new-order.ts';

/** A store under test, with what the suite needs beside it. */
export interface OpenedOrderStore {
  readonly store: OrderStore;
  /** Two merchants that have no order yet: other ones at each call. */
  merchantIds(): Promise<[MerchantId, MerchantId]>;
  countOrders(merchantId: MerchantId): Promise<number>;
  /** The name that the merchant was made with: different ones for the two of one call. */
  nameOf(merchantId: MerchantId): string;
  close(): Promise<void>;
}

/** Time that is plainly enough for one order, also on a busy machine. */
const timeoutMs = 10_000;

/** Time for one test: it must exceed `timeoutMs`, so that a store's own answer is what is judged. */
const testTimeoutMs = 30_000;

/** The suite that every order store must pass: what `OrderStore` promises, seen from outside. */
export function describeOrderStore(name: string, open: () => Promise<OpenedOrderStore>): void {
  describe(name, { timeout: testTimeoutMs }, () => {
    let opened: OpenedOrderStore;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened?.close());

    const create = (order: Order): Promise<CreateOutcome> => opened.store.create(order, timeoutMs);

    /** Keeps the order, sends its order_id again in another order, and gives what comes back. */
    const keepAndReadBack = async (order: Order): Promise<CreateOutcome> => {
      expect(await create(order)).toStrictEqual({ kind: 'created' });
      return create(newOrder(order.merchantId, { order_id: order.fields.order_id, order_note: 'Another order' }));
    };

    it('keeps an order once and then gives back the first one, whole', async () => {
      const [merchantId] = await opened.merchantIds();
      const first = newOrder(merchantId);
      const second = newOrder(merchantId, {
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
      expect(await opened.countOrders(merchantId)).toBe(1);
    });

    it.each(Object.entries(naughtyTexts))('keeps %s exactly', async (_, text) => {
      const [merchantId] = await opened.merchantIds();
      const order = newOrder(merchantId, {
        order_id: text,
        order_note: text,
        customer_name: text,
        customer_address_line1: text,
        customer_address_line2: text,
        customer_address_city: text,
        customer_address_state: text,
        customer_address_country: text,
      });

      expect(await keepAndReadBack(order)).toStrictEqual({ kind: 'exists', order });
    });

    it('keeps line breaks, tabs and outer blanks of a note exactly', async () => {
      const [merchantId] = await opened.merchantIds();
      const order = newOrder(merchantId, { order_note: '\n\t first\r\nsecond\rthird\n\n \t' });

      expect(await keepAndReadBack(order)).toStrictEqual({ kind: 'exists', order });
    });

    it('keeps every field at its greatest length, in code points of four bytes', async () => {
      const [merchantId] = await opened.merchantIds();
      const order = newOrder(merchantId, {
        order_id: '𝒪'.repeat(128),
        order_note: '𠜎'.repeat(1_000),
        customer_name: '😀'.repeat(255),
        customer_email: `${'😀'.repeat(242)}@example.com`,
        customer_phone: '+31 (20) 555-0142 #7 x 12345678'.padEnd(32, '9'),
        customer_address_line1: '🏠'.repeat(255),
        customer_address_line2: '🏢'.repeat(255),
        customer_address_city: '🌆'.repeat(100),
        customer_address_state: '🗺'.repeat(100),
        customer_address_country: '🌍'.repeat(100),
        customer_address_postal_code: '📮'.repeat(20),
        order_checksum: '~'.repeat(256),
        return_url: 'https://example.com/'.padEnd(2_048 - 4, 'r').concat('😀😀😀😀'),
      });

      expect(await keepAndReadBack(order)).toStrictEqual({ kind: 'exists', order });
    });

    it('keeps an absent second address line as the empty text', async () => {
      const [merchantId] = await opened.merchantIds();
      const order = newOrder(merchantId, { customer_address_line2: undefined });

      expect(order.fields.customer_address_line2).toBe('');
      expect(await keepAndReadBack(order)).toStrictEqual({ kind: 'exists', order });
    });

    it.each(['0.01', '0.10', '1.00', '100.50', '8191999999999.99', '9999999999999.98', '9999999999999.99'])(
      'gives the amount %s back exactly',
      async (amount) => {
        const [merchantId] = await opened.merchantIds();
        const order = newOrder(merchantId, { order_amount: new NumberText(amount) });

        expect(await keepAndReadBack(order)).toStrictEqual({ kind: 'exists', order });
      },
    );

    it.each([1_795_208_502_000, 1_795_208_502_001, 1_795_208_502_172, 1_795_208_502_999, 4_102_444_800_001])(
      'keeps the milliseconds of the creation time %i',
      async (createdAtMs) => {
        const [merchantId] = await opened.merchantIds();
        const order = { ...newOrder(merchantId), createdAtMs };

        expect(await keepAndReadBack(order)).toStrictEqual({ kind: 'exists', order });
      },
    );

    it.each([1, 2 ** 31, 2 ** 53 - 2, serviceOrderIdMax])('keeps the service order id %i', async (serviceOrderId) => {
      const [merchantId] = await opened.merchantIds();
      const order = { ...newOrder(merchantId), serviceOrderId };

      // The suite's own count starts at a million, so no other order of the merchant has this id.
      expect(await keepAndReadBack(order)).toStrictEqual({ kind: 'exists', order });
    });

    it('lets two merchants use the same order_id', async () => {
      const [one, other] = await opened.merchantIds();
      const first = newOrder(one, { order_note: 'Of one merchant' });
      const second = newOrder(other, { order_note: 'Of the other merchant' });

      expect(await create(first)).toStrictEqual({ kind: 'created' });
      expect(await create(second)).toStrictEqual({ kind: 'created' });
      expect(await create(newOrder(one))).toStrictEqual({ kind: 'exists', order: first });
      expect(await create(newOrder(other))).toStrictEqual({ kind: 'exists', order: second });
      expect(await opened.countOrders(one)).toBe(1);
      expect(await opened.countOrders(other)).toBe(1);
    });

    it.each([
      ['differ in case', ['A', 'a', 'Ä', 'ä', 'ß', 'SS', 'İ', 'i', 'ı', 'I']],
      ['differ in outer blanks', ['A', 'A ', 'A  ', ' A', 'A\u00a0', '\u2003A']],
      [
        'differ in normalisation or in unseen characters',
        ['é', 'e\u0301', 'A\u200b', 'A\u200d', 'A', '\u200fA', '\u00c5', '\u212b'],
      ],
      ['look like other values', ['NULL', 'null', 'undefined', '0', '00', '0.0', '1', '01', '1e0', 'true', '{}', '""']],
    ])('takes order_ids that %s for different orders', async (_, orderIds) => {
      const [merchantId] = await opened.merchantIds();
      const orders = orderIds.map((order_id) => newOrder(merchantId, { order_id, order_note: `Order ${order_id}` }));

      const created = await Promise.all(orders.map(create));
      expect(created.map(({ kind }) => kind)).toStrictEqual(orders.map(() => 'created'));
      const again = await Promise.all(orderIds.map((order_id) => create(newOrder(merchantId, { order_id }))));
      expect(again).toStrictEqual(orders.map((order) => ({ kind: 'exists', order })));
      expect(await opened.countOrders(merchantId)).toBe(orders.length);
    });

    it('keeps one of 50 racing orders with the same order_id and tells all callers of that one', async () => {
      const [merchantId] = await opened.merchantIds();
      const orders = Array.from({ length: 50 }, (_, caller) =>
        newOrder(merchantId, { order_id: 'raced', order_note: `Sent by caller ${caller}` }),
      );

      const outcomes = await Promise.all(orders.map(create));

      const kept = orders.filter((_, caller) => outcomes[caller]?.kind === 'created');
      expect(kept).toHaveLength(1);
      for (const [caller, outcome] of outcomes.entries()) {
        expect(outcome).toStrictEqual(
          orders[caller] === kept[0] ? { kind: 'created' } : { kind: 'exists', order: kept[0] },
        );
      }
      expect(await opened.countOrders(merchantId)).toBe(1);
    });

    it('answers each caller of a mixed concurrent batch about its own order', async () => {
      const merchantIds = await opened.merchantIds();
      // 180 calls for 90 orders, scattered: 30 are sent once, 30 twice, 30 three times; both merchants use the same order_ids.
      const orders = Array.from({ length: 180 }, (_, caller) => {
        const place = (caller * 77) % 180;
        const wanted = place < 90 ? place : place < 150 ? place - 90 : place - 150;
        const [even, odd] = merchantIds;
        return newOrder(wanted % 2 === 0 ? even : odd, {
          order_id: `mixed-${Math.floor(wanted / 2)}`,
          order_note: `Sent by caller ${caller}`,
        });
      });

      const outcomes = await Promise.all(orders.map(create));

      const keyOf = (order: Order) => `${order.merchantId} ${order.fields.order_id}`;
      const kept = new Map<string, Order>();
      for (const [caller, order] of orders.entries()) {
        if (outcomes[caller]?.kind !== 'created') continue;
        expect(kept.has(keyOf(order)), `${keyOf(order)} is created once`).toBe(false);
        kept.set(keyOf(order), order);
      }
      for (const [caller, order] of orders.entries()) {
        const first = kept.get(keyOf(order));
        expect(outcomes[caller]).toStrictEqual(
          first === order ? { kind: 'created' } : { kind: 'exists', order: first },
        );
      }
      expect(await Promise.all(merchantIds.map((merchantId) => opened.countOrders(merchantId)))).toStrictEqual([
        45, 45,
      ]);
    });

    describeLookups(() => opened, create);

    it.each([5_000, 4_999.5])('does not refuse an order whose time of %d ms is plainly enough', async (enoughMs) => {
      const [merchantId] = await opened.merchantIds();
      const orders = Array.from({ length: 20 }, (_, caller) => newOrder(merchantId, { order_id: `timed-${caller}` }));

      const outcomes = await Promise.all(orders.map((order) => opened.store.create(order, enoughMs)));

      expect(outcomes).toStrictEqual(orders.map(() => ({ kind: 'created' })));
    });
  });
}

/** What the look-ups promise. */
function describeLookups(opened: () => OpenedOrderStore, create: (order: Order) => Promise<CreateOutcome>): void {
  it('finds an order by order_id, by service order id and by token, whole', async () => {
    const { store, merchantIds, nameOf } = opened();
    const [merchantId] = await merchantIds();
    const order = newOrder(merchantId, { customer_address_line2: undefined, order_note: 'First line\n\tsecond' });
    await create(newOrder(merchantId, { order_id: 'one before' }));
    await create(order);
    await create(newOrder(merchantId, { order_id: 'one after' }));

    const found = { kind: 'found', order };
    expect(await store.findByOrderId(merchantId, order.fields.order_id, timeoutMs)).toStrictEqual(found);
    expect(await store.findByServiceOrderId(merchantId, order.serviceOrderId, timeoutMs)).toStrictEqual(found);
    expect(await store.findByToken(order.orderToken, timeoutMs)).toStrictEqual({
      ...found,
      merchantName: nameOf(merchantId),
    });
  });

  it('finds an order as soon as its creation is answered', async () => {
    const { store, merchantIds } = opened();
    const [merchantId] = await merchantIds();
    const orders = Array.from({ length: 40 }, (_, place) => newOrder(merchantId, { order_id: `at once ${place}` }));

    const found = await Promise.all(
      orders.map(async (order) => {
        await create(order);
        return store.findByOrderId(merchantId, order.fields.order_id, timeoutMs);
      }),
    );
    expect(found).toStrictEqual(orders.map((order) => ({ kind: 'found', order })));
  });

  it("never finds one merchant's order for another, but tells by its token who is paid", async () => {
    const { store, merchantIds, nameOf } = opened();
    const [one, other] = await merchantIds();
    const first = newOrder(one);
    const second = newOrder(other);
    await create(first);

    expect(await store.findByOrderId(other, first.fields.order_id, timeoutMs)).toStrictEqual({ kind: 'unknown' });
    expect(await store.findByServiceOrderId(other, first.serviceOrderId, timeoutMs)).toStrictEqual({ kind: 'unknown' });
    await create(second);
    expect(await store.findByOrderId(other, first.fields.order_id, timeoutMs)).toMatchObject({ order: second });
    expect(await store.findByToken(first.orderToken, timeoutMs)).toMatchObject({ merchantName: nameOf(one) });
    expect(await store.findByToken(second.orderToken, timeoutMs)).toMatchObject({ merchantName: nameOf(other) });
  });

  it('finds nothing for what was never kept, and keeps nothing by looking', async () => {
    const { store, merchantIds, countOrders } = opened();
    const [merchantId] = await merchantIds();

    expect(await store.findByOrderId(merchantId, 'never sent', timeoutMs)).toStrictEqual({ kind: 'unknown' });
    expect(await store.findByServiceOrderId(merchantId, serviceOrderIdMax - 1, timeoutMs)).toStrictEqual({
      kind: 'unknown',
    });
    expect(await store.findByToken(createOrderToken(randomBytes), timeoutMs)).toStrictEqual({ kind: 'unknown' });
    expect(await countOrders(merchantId)).toBe(0);
  });

  it.each(Object.entries(naughtyTexts))('finds an order whose order_id is %s', async (_, text) => {
    const { store, merchantIds } = opened();
    const [merchantId] = await merchantIds();
    const order = newOrder(merchantId, { order_id: text });
    await create(order);

    expect(await store.findByOrderId(merchantId, text, timeoutMs)).toStrictEqual({ kind: 'found', order });
    expect(await store.findByOrderId(merchantId, `${text} `, timeoutMs)).toStrictEqual({ kind: 'unknown' });
  });
}

/** Texts that storage, drivers and encodings are known to spoil. Each fits every text field that has no form of its own. */
const naughtyTexts = {
  'emoji with joiners and skin tones': '👩🏽‍🚀👨‍👩‍👧‍👦🏴󠁧󠁢󠁳󠁣󠁴󠁿🇳🇱1️⃣',
  'right-to-left text with its marks': '\u202bשלום \u200fمرحبا\u202c \u2066abc\u2069\u200e',
  quotes: `'single' "double" \`back\` ''twice'' ""twice"" ‘’ “” $$dollar$$`,
  backslashes: String.raw`\ \\ \n \' \" \u0000 \x00 E'\\' C:\temp\ `,
  'combining characters': 'e\u0301 é Z̷̛̹a̶l̵g̸o̸ \u1112\u1161\u11ab 한',
  'astral code points': '𝒜𠜎\u{10ffff}\u{1f600}\u{e0001}',
  'characters that are not one': '\ufeffx\ufffd\uffff\ufffe\ufdd0',
  'unseen characters and odd line ends': '\u200bx\u200d\u2060\u00ad\u2028\u2029\u061c',
  'outer blanks': '  \u00a0 padded \u3000  ',
  'SQL and placeholders': `'; DROP TABLE orders; -- /* $1 ? :name %s %(x)s {0} \${x} */`,
  'array and record literals': '{NULL,"a",b} (1,"x") [1,2) {}',
  'the word NULL': 'NULL',
  'JSON and markup': '{"a":"\\u0000"}<b>&amp;&#0;]]>',
  'one comma': ',',
} as const;
