import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MerchantId } from '../src/merchant.ts';
import { NumberText } from '../src/money.ts';
import type { Order, OrderStatus } from '../src/order.ts';
import { decide, type OrderAction, startFailure, transitions } from '../src/order-states.ts';
import type { CreateOutcome, EventPosition, OrderFilter, OrderStore } from '../src/order-store.ts';
import { createOrderToken } from '../src/order-token.ts';
import type { OrderInput } from '../src/parse-order.ts';
import { serviceOrderIdMax } from '../src/service-order-id.ts';
import { sampleOrder } from './sample-orders.ts';

/** A store under test and what the suite needs to test it. */
export interface OpenedOrderStore {
  readonly store: OrderStore;
  /** Returns two new merchants without orders. */
  merchantIds(): Promise<[MerchantId, MerchantId]>;
  countOrders(merchantId: MerchantId): Promise<number>;
  /** Returns the merchant's name. The two merchants of one `merchantIds` call have different names. */
  nameOf(merchantId: MerchantId): string;
  close(): Promise<void>;
}

/** Enough time for one order on a busy machine. */
const timeoutMs = 10_000;

/** More than `timeoutMs`, so that a store returns its own outcome before the test times out. */
const testTimeoutMs = 30_000;

/** The tests that every `OrderStore` must pass. */
export function describeOrderStore(name: string, open: () => Promise<OpenedOrderStore>): void {
  describe(name, { timeout: testTimeoutMs }, () => {
    let opened: OpenedOrderStore;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened?.close());

    /** Gives the order the id that the store assigned, so that it can be compared with what is found. */
    const create = async (order: Order): Promise<CreateOutcome | { readonly kind: 'created' }> => {
      const outcome = await opened.store.create(order, timeoutMs);
      if (outcome.kind !== 'created') return outcome;
      const { serviceOrderId } = outcome.order;
      expect(outcome.order).toStrictEqual(Object.assign(order, { serviceOrderId }));
      expect(Number.isSafeInteger(serviceOrderId) && serviceOrderId > 0).toBe(true);
      return { kind: 'created' };
    };

    it('create stores an order once and then returns the first one, complete', async () => {
      const [merchantId] = await opened.merchantIds();
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
      expect(await opened.countOrders(merchantId)).toBe(1);
    });

    it.each<[string, Overrides]>([
      ...Object.entries(naughtyTexts).map(([name, text]): [string, Overrides] => [name, { fields: inFreeTexts(text) }]),
      [
        'line breaks, tabs and outer blanks of a note',
        { fields: { order_note: '\n\t first\r\nsecond\rthird\n\n \t' } },
      ],
      ['every field at its maximum length, in code points of four bytes', { fields: longestFields }],
      ['an absent second address line as the empty text', { fields: { customer_address_line2: undefined } }],
      ...['0.01', '0.10', '1.00', '100.50', '8191999999999.99', '9999999999999.98', '9999999999999.99'].map(
        (amount): [string, Overrides] => [`the amount ${amount}`, { fields: { order_amount: new NumberText(amount) } }],
      ),
      ...[1_795_208_502_000, 1_795_208_502_001, 1_795_208_502_172, 1_795_208_502_999, 4_102_444_800_001].map(
        (createdAtMs): [string, Overrides] => [`the milliseconds of the creation time ${createdAtMs}`, { createdAtMs }],
      ),
    ])('create stores %s unchanged', async (_, { fields, ...assigned }) => {
      const [merchantId] = await opened.merchantIds();
      const order = { ...sampleOrder(merchantId, fields), ...assigned };

      expect(await create(order)).toStrictEqual({ kind: 'created' });
      const again = sampleOrder(merchantId, { order_id: order.fields.order_id, order_note: 'Another order' });
      expect(await create(again)).toStrictEqual({ kind: 'exists', order });
    });

    it('create accepts the same order_id from two merchants', async () => {
      const [one, other] = await opened.merchantIds();
      const first = sampleOrder(one, { order_note: 'Of one merchant' });
      const second = sampleOrder(other, { order_note: 'Of the other merchant' });

      expect(await create(first)).toStrictEqual({ kind: 'created' });
      expect(await create(second)).toStrictEqual({ kind: 'created' });
      expect(await create(sampleOrder(one))).toStrictEqual({ kind: 'exists', order: first });
      expect(await create(sampleOrder(other))).toStrictEqual({ kind: 'exists', order: second });
      expect(await opened.countOrders(one)).toBe(1);
      expect(await opened.countOrders(other)).toBe(1);
    });

    it.each([
      ['differ in case', ['A', 'a', 'Ä', 'ä', 'ß', 'SS', 'İ', 'i', 'ı', 'I']],
      ['differ in outer blanks', ['A', 'A ', 'A  ', ' A', 'A\u00a0', '\u2003A']],
      [
        'differ in normalisation or in invisible characters',
        ['é', 'e\u0301', 'A\u200b', 'A\u200d', 'A', '\u200fA', '\u00c5', '\u212b'],
      ],
      ['look like other values', ['NULL', 'null', 'undefined', '0', '00', '0.0', '1', '01', '1e0', 'true', '{}', '""']],
    ])('create treats order_ids that %s as different', async (_, orderIds) => {
      const [merchantId] = await opened.merchantIds();
      const orders = orderIds.map((order_id) => sampleOrder(merchantId, { order_id, order_note: `Order ${order_id}` }));

      const created = await Promise.all(orders.map(create));
      expect(created.map(({ kind }) => kind)).toStrictEqual(orders.map(() => 'created'));
      const again = await Promise.all(orderIds.map((order_id) => create(sampleOrder(merchantId, { order_id }))));
      expect(again).toStrictEqual(orders.map((order) => ({ kind: 'exists', order })));
      expect(await opened.countOrders(merchantId)).toBe(orders.length);
    });

    it('create stores one of 50 racing orders with the same order_id and returns that one to all calls', async () => {
      const [merchantId] = await opened.merchantIds();
      const orders = Array.from({ length: 50 }, (_, call) =>
        sampleOrder(merchantId, { order_id: 'raced', order_note: `Sent by call ${call}` }),
      );

      const outcomes = await Promise.all(orders.map(create));

      const stored = orders.filter((_, call) => outcomes[call]?.kind === 'created');
      expect(stored).toHaveLength(1);
      for (const [call, outcome] of outcomes.entries()) {
        expect(outcome).toStrictEqual(
          orders[call] === stored[0] ? { kind: 'created' } : { kind: 'exists', order: stored[0] },
        );
      }
      expect(await opened.countOrders(merchantId)).toBe(1);
    });

    it('create returns to each call of a mixed concurrent batch the outcome of its own order', async () => {
      const merchantIds = await opened.merchantIds();
      // 180 calls for 90 orders, scattered: 30 are sent once, 30 twice, 30 three times; both merchants use the same order_ids.
      const orders = Array.from({ length: 180 }, (_, call) => {
        const shuffled = (call * 77) % 180;
        const wanted = shuffled < 90 ? shuffled : shuffled < 150 ? shuffled - 90 : shuffled - 150;
        const [even, odd] = merchantIds;
        return sampleOrder(wanted % 2 === 0 ? even : odd, {
          order_id: `mixed-${Math.floor(wanted / 2)}`,
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
      expect(await Promise.all(merchantIds.map((merchantId) => opened.countOrders(merchantId)))).toStrictEqual([
        45, 45,
      ]);
    });

    describeLookups(() => opened, create);
    describeChanges(() => opened, create);
    describeLists(() => opened, create);

    it('create assigns different service order ids to the orders of all merchants', async () => {
      const merchantIds = await opened.merchantIds();
      const orders = Array.from({ length: 300 }, (_, index) =>
        sampleOrder(merchantIds[index % 2 === 0 ? 0 : 1], { order_id: `numbered-${index}` }),
      );
      await Promise.all(orders.map(create));
      expect(new Set(orders.map(({ serviceOrderId }) => serviceOrderId)).size).toBe(300);
    });

    it.each([5_000, 4_999.5])('create accepts a timeout of %d ms', async (enoughMs) => {
      const [merchantId] = await opened.merchantIds();
      const orders = Array.from({ length: 20 }, (_, call) => sampleOrder(merchantId, { order_id: `timed-${call}` }));

      const outcomes = await Promise.all(orders.map((order) => opened.store.create(order, enoughMs)));

      expect(outcomes).toStrictEqual(orders.map(() => ({ kind: 'created', order: expect.anything() })));
    });
  });
}

type Create = (order: Order) => Promise<{ readonly kind: CreateOutcome['kind'] }>;

/** What differs from a new order. */
interface Overrides {
  readonly fields?: OrderInput;
  readonly createdAtMs?: number;
}

/** The text in every field without a format. */
function inFreeTexts(text: string): OrderInput {
  return {
    ...{ order_id: text, order_note: text, customer_name: text },
    ...{ customer_address_line1: text, customer_address_line2: text, customer_address_city: text },
    ...{ customer_address_state: text, customer_address_country: text },
  };
}

const longestFields: OrderInput = {
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
};

/** The tests of the lookups. */
function describeLookups(opened: () => OpenedOrderStore, create: Create): void {
  it('lookups find an order by order_id, by service order id and by token, complete', async () => {
    const { store, merchantIds, nameOf } = opened();
    const [merchantId] = await merchantIds();
    const order = sampleOrder(merchantId, { customer_address_line2: undefined, order_note: 'First line\n\tsecond' });
    await create(sampleOrder(merchantId, { order_id: 'one before' }));
    await create(order);
    await create(sampleOrder(merchantId, { order_id: 'one after' }));

    const found = { kind: 'found', order };
    expect(await store.findByOrderId(merchantId, order.fields.order_id, timeoutMs)).toStrictEqual(found);
    expect(await store.findByServiceOrderId(merchantId, order.serviceOrderId, timeoutMs)).toStrictEqual(found);
    const link = {
      ...found,
      merchant: { name: nameOf(merchantId), mode: 'live', isDisabled: false, signingSecret: null },
    };
    expect(await store.findByToken(order.orderToken, timeoutMs)).toStrictEqual(link);
    expect(await store.findForPage(order.orderToken, timeoutMs)).toStrictEqual(link);
  });

  it('lookups find an order as soon as create has returned', async () => {
    const { store, merchantIds } = opened();
    const [merchantId] = await merchantIds();
    const orders = Array.from({ length: 40 }, (_, index) => sampleOrder(merchantId, { order_id: `at once ${index}` }));

    const found = await Promise.all(
      orders.map(async (order) => {
        await create(order);
        return store.findByOrderId(merchantId, order.fields.order_id, timeoutMs);
      }),
    );
    expect(found).toStrictEqual(orders.map((order) => ({ kind: 'found', order })));
  });

  it("lookups by id never find another merchant's order; the token finds it with its merchant's name", async () => {
    const { store, merchantIds, nameOf } = opened();
    const [one, other] = await merchantIds();
    const first = sampleOrder(one);
    const second = sampleOrder(other);
    await create(first);

    expect(await store.findByOrderId(other, first.fields.order_id, timeoutMs)).toStrictEqual({ kind: 'unknown' });
    expect(await store.findByServiceOrderId(other, first.serviceOrderId, timeoutMs)).toStrictEqual({ kind: 'unknown' });
    await create(second);
    expect(await store.findByOrderId(other, first.fields.order_id, timeoutMs)).toMatchObject({ order: second });
    expect(await store.findByToken(first.orderToken, timeoutMs)).toMatchObject({ merchant: { name: nameOf(one) } });
    expect(await store.findByToken(second.orderToken, timeoutMs)).toMatchObject({ merchant: { name: nameOf(other) } });
  });

  it('lookups find nothing for unknown ids and store nothing', async () => {
    const { store, merchantIds, countOrders } = opened();
    const [merchantId] = await merchantIds();

    expect(await store.findByOrderId(merchantId, 'never sent', timeoutMs)).toStrictEqual({ kind: 'unknown' });
    expect(await store.findByServiceOrderId(merchantId, serviceOrderIdMax - 1, timeoutMs)).toStrictEqual({
      kind: 'unknown',
    });
    expect(await store.findByToken(createOrderToken(randomBytes), timeoutMs)).toStrictEqual({ kind: 'unknown' });
    expect(await countOrders(merchantId)).toBe(0);
  });

  it.each(Object.entries(naughtyTexts))('lookups find an order whose order_id is %s', async (_, text) => {
    const { store, merchantIds } = opened();
    const [merchantId] = await merchantIds();
    const order = sampleOrder(merchantId, { order_id: text });
    await create(order);

    expect(await store.findByOrderId(merchantId, text, timeoutMs)).toStrictEqual({ kind: 'found', order });
    expect(await store.findByOrderId(merchantId, `${text} `, timeoutMs)).toStrictEqual({ kind: 'unknown' });
  });
}

/** An order whose end is so many milliseconds ahead, or past. */
function endingIn(merchantId: MerchantId, ms: number, overrides?: OrderInput): Order {
  return { ...sampleOrder(merchantId, overrides), expiresAtMs: Date.now() + ms };
}

const hourMs = 3_600_000;

/** Later than the creation of any sample order, whatever the clock says. */
const sampleNowMs = 1_795_300_000_000;

type PayAction = Extract<OrderAction, { kind: 'pay' }>;

/** The tests of changes of state. Their order and their errors are those of `decide`. */
function describeChanges(opened: () => OpenedOrderStore, create: Create): void {
  const paymentOf = (order: Order, paymentId: string, paidAtMs = order.createdAtMs): PayAction => {
    const { order_amount: amount, order_currency: currency } = order.fields;
    const reported = { checkoutId: order.merchantId, paymentId, paidAtMs, amount, currency };
    const payment = { ...reported, isKnown: false, refused: null };
    return { kind: 'pay', payment };
  };
  const findForPayment = async ({ orderToken }: Order, { payment }: PayAction) => {
    const { checkoutId, paymentId } = payment;
    if (checkoutId === null) throw new Error('the payment is simulated');
    const found = await opened().store.findForPayment(orderToken, { checkoutId, paymentId }, timeoutMs);
    if (found.kind !== 'found') throw new Error(found.kind);
    return found;
  };
  const find = async ({ merchantId, fields }: Order): Promise<Order> => {
    const found = await opened().store.findByOrderId(merchantId, fields.order_id, timeoutMs);
    if (found.kind !== 'found') throw new Error(found.kind);
    return found.order;
  };
  const decideNow = async (order: Order, action: OrderAction) => {
    if (action.kind === 'cancel') return decide(await find(order), action, Date.now());
    const { order: found, isKnown, refused } = await findForPayment(order, action);
    // The creation times of sample orders are not those of a clock.
    return decide(
      found,
      { ...action, payment: { ...action.payment, isKnown, refused } },
      Math.max(Date.now(), sampleNowMs),
    );
  };
  /** What a use case does: read, decide, change, and the same again where another change was faster. */
  const act = async (order: Order, action: OrderAction): Promise<string> => {
    const decided = await decideNow(order, action);
    if (!decided.ok) return decided.failure.kind;
    if (decided.value.kind === 'replayed') return 'replayed';
    if (decided.value.kind === 'refuse') {
      const { refusal } = decided.value;
      const { kind } = await opened().store.refusePayment(refusal, timeoutMs);
      return kind === 'conflict' ? act(order, action) : kind === 'changed' ? refusal.payment.code : kind;
    }
    const { kind } = await opened().store.change(decided.value.change, timeoutMs);
    return kind === 'conflict' ? act(order, action) : kind;
  };
  const eventsOf = async ({ merchantId }: Order): Promise<string[]> => {
    const page = await opened().store.listEvents(merchantId, { limit: 100 }, timeoutMs);
    if (page.kind !== 'found') throw new Error(page.kind);
    return page.events.map(({ type, order }) => `${type} ${order.fields.order_id}`);
  };
  /** Events appear when no earlier transaction of the database server runs any more. */
  const expectEvents = (order: Order, events: string[]) =>
    expect.poll(() => eventsOf(order), { timeout: timeoutMs }).toStrictEqual(events);
  const created = async (order: Order): Promise<Order> => {
    expect(await create(order)).toStrictEqual({ kind: 'created' });
    return order;
  };
  const newMerchant = async () => (await opened().merchantIds())[0];

  it('change stores a payment, a cancellation and their events, each once', async () => {
    const merchantId = await newMerchant();
    const paid = await created(sampleOrder(merchantId, { order_id: 'paid' }));
    const cancelled = await created(sampleOrder(merchantId, { order_id: 'cancelled' }));

    expect(await act(paid, paymentOf(paid, 'p-1', 1_795_208_502_172))).toBe('changed');
    expect(await act(paid, paymentOf(paid, 'p-1', 1_795_208_502_172))).toBe('replayed');
    expect(await act(paid, paymentOf(paid, 'p-1', 1_795_208_502_173))).toBe('payment_id_conflict');
    expect(await act(paid, { kind: 'cancel' })).toBe('order_already_paid');
    expect(await act(cancelled, { kind: 'cancel' })).toBe('changed');
    expect(await act(cancelled, { kind: 'cancel' })).toBe('replayed');
    expect(await find(paid)).toStrictEqual({
      ...paid,
      orderStatus: 'PAID',
      payment: { checkoutId: merchantId, paymentId: 'p-1', paidAtMs: 1_795_208_502_172 },
    });
    expect(await find(cancelled)).toStrictEqual({
      ...cancelled,
      orderStatus: 'CANCELLED',
      cancelledAtMs: expect.any(Number),
    });
    await expectEvents(paid, ['order.paid paid', 'order.cancelled cancelled']);
  });

  it('change takes an order past its end as expired, whether that is stored or not', async () => {
    const merchantId = await newMerchant();
    const open = await created(endingIn(merchantId, hourMs, { order_id: 'open' }));
    const late = await created(endingIn(merchantId, -hourMs, { order_id: 'late' }));
    const tooLate = await created(endingIn(merchantId, -25 * hourMs, { order_id: 'too late' }));

    const cancelled: Order = { ...late, orderStatus: 'CANCELLED', cancelledAtMs: late.createdAtMs };
    const cancellation = { transition: transitions.cancel, order: cancelled };
    expect(await opened().store.change(cancellation, timeoutMs)).toStrictEqual({ kind: 'conflict' });
    expect((await find(open)).orderStatus).toBe('UN_PAID');
    expect((await find(late)).orderStatus).toBe('EXPIRED');
    expect(await create(sampleOrder(merchantId, { order_id: 'late' }))).toMatchObject({
      order: { orderStatus: 'EXPIRED' },
    });
    expect(await act(late, { kind: 'cancel' })).toBe('order_expired');
    const end = late.expiresAtMs ?? 0;
    expect(await act(late, paymentOf(late, 'p-0', end))).toBe('order_expired');
    expect(await act(late, paymentOf(late, 'p-1', end - 1))).toBe('changed');
    expect(await act(tooLate, paymentOf(tooLate, 'p-2', (tooLate.expiresAtMs ?? 0) - 1))).toBe('order_expired');
    expect(await act(open, paymentOf(open, 'p-3', Date.now()))).toBe('changed');
    // An order that is shown as expired is stored as expired.
    await expectEvents(open, [
      'order.expired late',
      'order.payment_refused late',
      'order.paid late',
      'order.expired too late',
      'order.payment_refused too late',
      'order.paid open',
    ]);
  });

  it.each([
    [
      'payments and cancellations',
      (order: Order, call: number) => (call % 2 ? paymentOf(order, 'p-1') : { kind: 'cancel' as const }),
    ],
    ['two payments', (order: Order, call: number) => paymentOf(order, `p-${call % 2}`)],
    ['cancellations', () => ({ kind: 'cancel' as const })],
  ])('change lets one of 50 racing %s win, and all of them learn the result', async (_, actionOf) => {
    const merchantId = await newMerchant();
    const order = await created(sampleOrder(merchantId));

    const outcomes = await Promise.all(Array.from({ length: 50 }, (_, call) => act(order, actionOf(order, call))));

    expect(outcomes.filter((outcome) => outcome === 'changed')).toHaveLength(1);
    const winner = actionOf(order, outcomes.indexOf('changed'));
    const now = await find(order);
    expect(now.orderStatus).toBe(winner.kind === 'pay' ? 'PAID' : 'CANCELLED');
    for (const [call, outcome] of outcomes.entries()) {
      const decided = await decideNow(now, actionOf(order, call));
      const expected = decided.ok ? decided.value.kind : decided.failure.kind;
      if (outcome !== 'changed') expect(outcome).toBe(expected);
    }
    const refused = now.refusedPayments.map(() => `order.payment_refused ${order.fields.order_id}`);
    await expect.poll(async () => (await eventsOf(order)).slice(1), { timeout: timeoutMs }).toStrictEqual(refused);
    // The refused payment of each id is stored once, however often it was reported.
    const actions = outcomes.map((_, call) => actionOf(order, call));
    const ids = new Set(actions.flatMap((action) => (action.kind === 'pay' ? [action.payment.paymentId] : [])));
    if (winner.kind === 'pay') ids.delete(winner.payment.paymentId);
    expect(now.refusedPayments.map(({ paymentId }) => paymentId)).toStrictEqual([...ids]);
  });

  it('findForPayment finds the order of a link, whether the payment is known, and the time of the store', async () => {
    const [one, other] = await opened().merchantIds();
    const [first, second] = [await created(sampleOrder(one)), await created(sampleOrder(other))];
    const payment = paymentOf(first, 'p-1');
    const [startedAtMs, found] = [Date.now(), await findForPayment(second, payment)];
    expect(found).toMatchObject({ order: second, isKnown: false, merchant: { name: opened().nameOf(other) } });
    // The clock of the database may be another one.
    expect(Math.abs(found.nowMs - startedAtMs)).toBeLessThan(hourMs);

    expect(await act(first, payment)).toBe('changed');
    expect(await findForPayment(second, payment)).toMatchObject({ order: second, isKnown: true });
    expect(await findForPayment(first, payment)).toMatchObject({ order: { orderStatus: 'PAID' }, isKnown: true });
    expect(await findForPayment(second, paymentOf(first, 'p-2'))).toMatchObject({ isKnown: false });
    // Of another checkout system.
    expect(await findForPayment(second, paymentOf(second, 'p-1'))).toMatchObject({ isKnown: false });
    const unknown = opened().store.findForPayment(
      createOrderToken(randomBytes),
      { checkoutId: one, paymentId: 'p-1' },
      timeoutMs,
    );
    expect(await unknown).toStrictEqual({ kind: 'unknown' });
  });

  it('change lets one payment pay one of 50 orders of two merchants that race for it', async () => {
    const [one, other] = await opened().merchantIds();
    const orders = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        created(sampleOrder(index % 2 ? one : other, { order_id: `one-payment-${index}` })),
      ),
    );
    const { payment } = paymentOf(sampleOrder(one), 'p-1');
    const outcomes = await Promise.all(orders.map((order) => act(order, { kind: 'pay', payment })));

    expect(outcomes.filter((outcome) => outcome === 'changed')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'payment_id_conflict')).toHaveLength(49);
    const statuses = await Promise.all(orders.map(async (order) => (await find(order)).orderStatus));
    expect(statuses).toStrictEqual(outcomes.map((outcome) => (outcome === 'changed' ? 'PAID' : 'UN_PAID')));
  });

  it('refusePayment stores a refused payment once, with its event, and the record lists it', async () => {
    const merchantId = await newMerchant();
    const [order, other] = [
      await created(sampleOrder(merchantId, { order_id: 'refusing' })),
      await created(sampleOrder(merchantId, { order_id: 'other' })),
    ];
    const mismatch = (paymentId: string): PayAction => {
      const { payment } = paymentOf(order, paymentId, order.createdAtMs + 1);
      return { kind: 'pay', payment: { ...payment, currency: 'JPY' } };
    };
    expect(await act(order, mismatch('p-1'))).toBe('payment_mismatch');
    expect(await act(order, mismatch('p-1'))).toBe('payment_mismatch');
    expect(await act(order, paymentOf(order, 'p-1'))).toBe('payment_id_conflict');
    expect(await act(other, paymentOf(other, 'p-1'))).toBe('payment_id_conflict');
    expect(await act(order, paymentOf(order, 'p-2'))).toBe('changed');
    // As it was refused, although another payment would be refused because the order is paid.
    expect(await act(order, mismatch('p-1'))).toBe('payment_mismatch');
    expect(await act(order, paymentOf(order, 'p-3'))).toBe('order_already_paid');

    const { checkoutId, ...reported } = mismatch('p-1').payment;
    const { paymentId, paidAtMs, amount, currency } = reported;
    const { refusedPayments } = await find(order);
    expect(refusedPayments).toStrictEqual([
      {
        ...{ checkoutId, paymentId, paidAtMs, amount, currency },
        code: 'payment_mismatch',
        refusedAtMs: expect.any(Number),
      },
      {
        ...{ checkoutId, paymentId: 'p-3', paidAtMs: order.createdAtMs, amount: order.fields.order_amount },
        ...{ currency: order.fields.order_currency, code: 'order_already_paid', refusedAtMs: expect.any(Number) },
      },
    ]);
    expect((await find(other)).refusedPayments).toStrictEqual([]);
    expect(await findForPayment(order, mismatch('p-1'))).toMatchObject({ isKnown: true, refused: refusedPayments[0] });
    expect(await findForPayment(order, paymentOf(order, 'p-2'))).toMatchObject({ isKnown: true, refused: null });
    expect(await findForPayment(other, mismatch('p-1'))).toMatchObject({ isKnown: true, refused: null });
    await expectEvents(order, [
      'order.payment_refused refusing',
      'order.paid refusing',
      'order.payment_refused refusing',
    ]);
  });

  it('refusePayment for a state that the order has left writes nothing', async () => {
    const order = await created(sampleOrder(await newMerchant()));
    const { payment } = paymentOf(order, 'p-1');
    const stale = decide(order, { kind: 'pay', payment: { ...payment, currency: 'JPY' } }, sampleNowMs);
    await act(order, { kind: 'cancel' });
    if (!stale.ok || stale.value.kind !== 'refuse') throw new Error('the payment is refused');
    expect(await opened().store.refusePayment(stale.value.refusal, timeoutMs)).toStrictEqual({ kind: 'conflict' });
    expect((await find(order)).refusedPayments).toStrictEqual([]);
    await expect.poll(() => eventsOf(order), { timeout: timeoutMs }).toHaveLength(1);
  });

  const attemptOf = ({ merchantId }: Order, attemptId: string) => ({ checkoutId: merchantId, attemptId });
  /** What StartPayment does. */
  const start = async (order: Order, attemptId: string, leaseSeconds = 900): Promise<string> => {
    const attempt = attemptOf(order, attemptId);
    const failure = startFailure(await find(order), attempt, Date.now());
    if (failure !== undefined) return failure.kind;
    const { kind } = await opened().store.startPayment(order, attempt, leaseSeconds, timeoutMs);
    return kind === 'conflict' ? start(order, attemptId, leaseSeconds) : kind;
  };
  const end = (order: Order, attemptId: string) =>
    opened().store.endPayment(order, attemptOf(order, attemptId), timeoutMs);

  it('startPayment claims an unpaid order for one attempt at a time, and endPayment ends that', async () => {
    const order = await created(sampleOrder(await newMerchant()));
    const attempt = attemptOf(order, 'a-1');
    const { store } = opened();
    const started = await store.startPayment(order, attempt, 900, timeoutMs);
    if (started.kind !== 'changed') throw new Error(started.kind);
    const { endsAtMs } = started;
    expect(Math.abs(endsAtMs - Date.now() - 900_000)).toBeLessThan(hourMs);

    expect(await find(order)).toStrictEqual({ ...order, lease: { ...attempt, endsAtMs, isLive: true } });
    expect(await store.startPayment(order, attempt, 60, timeoutMs)).toStrictEqual({ kind: 'changed', endsAtMs });
    const extended = await store.startPayment(order, attempt, 1_800, timeoutMs);
    expect(extended.kind === 'changed' && extended.endsAtMs - endsAtMs).toBeGreaterThanOrEqual(900_000);
    const others = [attemptOf(order, 'a-2'), { ...attempt, checkoutId: (await opened().merchantIds())[1] }];
    for (const other of others) {
      expect(await store.startPayment(order, other, 900, timeoutMs)).toStrictEqual({ kind: 'conflict' });
      expect(await store.endPayment(order, other, timeoutMs)).toStrictEqual({ kind: 'conflict' });
    }
    const cancelled: Order = { ...order, orderStatus: 'CANCELLED', cancelledAtMs: order.createdAtMs };
    const cancellation = { transition: transitions.cancel, order: cancelled };
    expect(await store.change(cancellation, timeoutMs)).toStrictEqual({ kind: 'conflict' });

    expect(await end(order, 'a-1')).toStrictEqual({ kind: 'changed' });
    expect(await end(order, 'a-1')).toStrictEqual({ kind: 'conflict' });
    expect((await find(order)).lease).toMatchObject({ ...attempt, isLive: false });
    expect(await start(order, 'a-2')).toBe('changed');
    expect(await end(order, 'a-2')).toStrictEqual({ kind: 'changed' });
    expect(await act(order, { kind: 'cancel' })).toBe('changed');
    expect((await find(order)).lease).toBeNull();
    expect(await start(order, 'a-2')).toBe('order_cancelled');
    expect(await store.startPayment(order, attempt, 900, timeoutMs)).toStrictEqual({ kind: 'conflict' });
  });

  it('an order past its expiry expires when its lease ends, and not before', async () => {
    const merchantId = await newMerchant();
    let order: Order;
    let leftMs = 500;
    // On a slow machine an order may expire before it is claimed.
    do {
      leftMs *= 2;
      order = await created(endingIn(merchantId, leftMs, { order_id: `leased-${leftMs}` }));
    } while ((await start(order, 'a-1')) === 'order_expired');
    const isListedAs = async (status: OrderStatus) => {
      const page = await opened().store.list(merchantId, { status, limit: 100 }, timeoutMs);
      return page.kind === 'found' && page.orders.some(({ orderToken }) => orderToken === order.orderToken);
    };
    await expect.poll(() => Date.now(), { timeout: timeoutMs }).toBeGreaterThan((order.expiresAtMs ?? 0) + 1_000);

    expect((await find(order)).orderStatus).toBe('UN_PAID');
    expect([await isListedAs('UN_PAID'), await isListedAs('EXPIRED')]).toEqual([true, false]);
    expect(await start(order, 'a-1', 1_800)).toBe('changed');
    expect(await end(order, 'a-1')).toStrictEqual({ kind: 'changed' });
    expect([await isListedAs('UN_PAID'), await isListedAs('EXPIRED')]).toEqual([false, true]);
    const expired = await find(order);
    expect(expired.orderStatus).toBe('EXPIRED');
    expect(await start(order, 'a-1')).toBe('order_expired');
    const endsAtMs = expired.lease?.endsAtMs ?? 0;
    expect(await act(order, paymentOf(order, 'p-1', endsAtMs))).toBe('order_expired');
    expect(await act(order, paymentOf(order, 'p-2', endsAtMs - 1))).toBe('changed');
    const id = order.fields.order_id;
    await expect
      .poll(async () => (await eventsOf(order)).filter((event) => event.endsWith(id)), { timeout: timeoutMs })
      .toStrictEqual([`order.expired ${id}`, `order.payment_refused ${id}`, `order.paid ${id}`]);
  });

  it('expireNow lets an order expire that has no lease, and its end is that time', async () => {
    const merchantId = await newMerchant();
    const { store } = opened();
    for (const [order_id, left] of [
      ['without an end', null],
      ['with an end', hourMs],
    ] as const) {
      const expiresAtMs = left === null ? null : Date.now() + left;
      const order = await created({ ...sampleOrder(merchantId, { order_id }), expiresAtMs });
      expect(await start(order, 'a-1')).toBe('changed');
      expect(await store.expireNow(order, timeoutMs)).toStrictEqual({ kind: 'conflict' });
      expect(await end(order, 'a-1')).toStrictEqual({ kind: 'changed' });
      expect(await store.expireNow(order, timeoutMs)).toStrictEqual({ kind: 'changed' });
      expect(await store.expireNow(order, timeoutMs)).toStrictEqual({ kind: 'conflict' });
      const expired = await find(order);
      expect(expired.orderStatus).toBe('EXPIRED');
      expect(Math.abs((expired.expiresAtMs ?? 0) - Date.now())).toBeLessThan(hourMs / 2);
    }
    await expectEvents(sampleOrder(merchantId), ['order.expired without an end', 'order.expired with an end']);
  });

  it('a payment ends the lease of any attempt', async () => {
    const order = await created(sampleOrder(await newMerchant()));
    expect(await start(order, 'a-1')).toBe('changed');
    expect(await act(order, paymentOf(order, 'p-1'))).toBe('changed');
    expect(await find(order)).toMatchObject({ orderStatus: 'PAID', lease: null });
    expect(await end(order, 'a-1')).toStrictEqual({ kind: 'conflict' });
  });

  it('startPayment lets one of 50 racing attempts claim an order', async () => {
    const order = await created(sampleOrder(await newMerchant()));
    const outcomes = await Promise.all(Array.from({ length: 50 }, (_, call) => start(order, `a-${call}`)));

    expect(outcomes.filter((outcome) => outcome === 'changed')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'payment_in_progress')).toHaveLength(49);
    expect((await find(order)).lease?.attemptId).toBe(`a-${outcomes.indexOf('changed')}`);
  });

  it('of racing attempts, cancellations and payments, no cancellation wins over a lease and no order is paid twice', async () => {
    const merchantId = await newMerchant();
    const orders = await Promise.all(
      Array.from({ length: 20 }, (_, index) => created(sampleOrder(merchantId, { order_id: `raced-${index}` }))),
    );
    await Promise.all(
      orders.map(async (order, index) => {
        const outcomes = await Promise.all([
          start(order, 'a-1'),
          act(order, { kind: 'cancel' }),
          start(order, 'a-2'),
          ...(index % 2
            ? [act(order, paymentOf(order, `p-1-${index}`)), act(order, paymentOf(order, `p-2-${index}`))]
            : []),
        ]);
        const [first, cancelled, second, ...paid] = outcomes;
        const now = await find(order);
        expect([first, second].filter((outcome) => outcome === 'changed').length).toBeLessThanOrEqual(1);
        expect(paid.filter((outcome) => outcome === 'changed').length).toBe(now.orderStatus === 'PAID' ? 1 : 0);
        expect(cancelled === 'changed').toBe(now.orderStatus === 'CANCELLED');
        // A payment is stored although another attempt holds the order; a cancellation is not.
        if (now.orderStatus !== 'UN_PAID') expect(now.lease).toBeNull();
        else expect(now.lease?.isLive).toBe(true);
        if (now.orderStatus === 'CANCELLED') expect([first, second]).not.toContain('changed');
      }),
    );
  });

  it('change of a state that the order has left writes nothing', async () => {
    const merchantId = await newMerchant();
    const order = await created(sampleOrder(merchantId));
    const stale = decide(order, paymentOf(order, 'p-1'), Date.now());
    await act(order, { kind: 'cancel' });

    if (!stale.ok || stale.value.kind !== 'change') throw new Error('the order can be paid');
    expect(await opened().store.change(stale.value.change, timeoutMs)).toStrictEqual({ kind: 'conflict' });
    expect((await find(order)).orderStatus).toBe('CANCELLED');
    await expect.poll(() => eventsOf(order), { timeout: timeoutMs }).toHaveLength(1);
  });
}

/** The tests of lists. */
function describeLists(opened: () => OpenedOrderStore, create: Create): void {
  const list = async (merchantId: MerchantId, filter: Partial<OrderFilter> = {}): Promise<readonly Order[]> => {
    const page = await opened().store.list(merchantId, { limit: 100, ...filter }, timeoutMs);
    if (page.kind !== 'found') throw new Error(page.kind);
    return page.orders;
  };

  it('list returns the orders of the merchant, newest first, of one millisecond the highest id first', async () => {
    const [merchantId, other] = await opened().merchantIds();
    const orders = [3, 1, 2, 2, 1].map((createdAtMs, index) => ({
      ...sampleOrder(merchantId, { order_id: `listed-${index}` }),
      createdAtMs,
    }));
    await Promise.all([...orders, sampleOrder(other)].map(create));

    const newestFirst = [0, 3, 2, 4, 1].map((index) => orders[index]);
    expect(await list(merchantId)).toStrictEqual(newestFirst);
    expect(await list(merchantId, { limit: 2 })).toStrictEqual(newestFirst.slice(0, 2));
    expect(await list(merchantId, { limit: 2, after: newestFirst[1] })).toStrictEqual(newestFirst.slice(2, 4));
    expect(await list(merchantId, { createdFromMs: 2 })).toStrictEqual(newestFirst.slice(0, 3));
    expect(await list(merchantId, { createdToMs: 2 })).toStrictEqual(newestFirst.slice(3));
    expect(await list(merchantId, { createdFromMs: 1, createdToMs: 2, after: orders[4] })).toStrictEqual([orders[1]]);
    expect(await list(merchantId, { createdFromMs: 4 })).toStrictEqual([]);
  });

  it('list filters by the current status', async () => {
    const { store, merchantIds } = opened();
    const [merchantId] = await merchantIds();
    const [open, ended, paid] = [
      endingIn(merchantId, hourMs, { order_id: 'open' }),
      endingIn(merchantId, -hourMs, { order_id: 'ended' }),
      sampleOrder(merchantId, { order_id: 'paid' }),
    ];
    const endless = sampleOrder(merchantId, { order_id: 'endless' });
    await Promise.all([open, ended, paid, endless].map(create));
    const order: Order = { ...paid, orderStatus: 'PAID', payment: { checkoutId: null, paymentId: 'p', paidAtMs: 1 } };
    await store.change({ transition: transitions.pay, order }, timeoutMs);

    const idsOf = async (status: OrderStatus) =>
      (await list(merchantId, { status })).map(({ fields }) => fields.order_id);
    expect(await idsOf('UN_PAID')).toStrictEqual(['endless', 'open']);
    expect(await idsOf('EXPIRED')).toStrictEqual(['ended']);
    expect(await idsOf('PAID')).toStrictEqual(['paid']);
    expect(await idsOf('CANCELLED')).toStrictEqual([]);
    expect((await list(merchantId)).map(({ orderStatus }) => orderStatus)).toStrictEqual([
      'UN_PAID',
      'PAID',
      'EXPIRED',
      'UN_PAID',
    ]);
  });

  it('list filters by pairs of metadata, and by the other filters too', async () => {
    const { store, merchantIds } = opened();
    const [merchantId, other] = await merchantIds();
    const both = { cart: '17', kind: 'gift' };
    const orders = [both, { cart: '17' }, { kind: 'gift' }, null, both].map((metadata, index) => ({
      ...sampleOrder(merchantId, { order_id: `with-metadata-${index}` }, metadata),
      createdAtMs: index,
    }));
    await Promise.all([...orders, sampleOrder(other, {}, both)].map(create));
    const paid: Order = {
      ...sampleOrder(merchantId),
      ...orders[1],
      orderStatus: 'PAID',
      payment: { checkoutId: null, paymentId: 'p', paidAtMs: 1 },
    };
    await store.change({ transition: transitions.pay, order: paid }, timeoutMs);

    const indexesOf = async (filter: Partial<OrderFilter>) =>
      (await list(merchantId, filter)).map(({ fields }) => Number(fields.order_id.slice(-1)));
    expect(await indexesOf({ metadata: { cart: '17' } })).toStrictEqual([4, 1, 0]);
    expect(await indexesOf({ metadata: both })).toStrictEqual([4, 0]);
    expect(await indexesOf({ metadata: { cart: '1' } })).toStrictEqual([]);
    expect(await indexesOf({ metadata: { cart: '17', kind: 'none' } })).toStrictEqual([]);
    expect(await indexesOf({ metadata: { cart: '17' }, status: 'PAID' })).toStrictEqual([1]);
    expect(await indexesOf({ metadata: { cart: '17' }, createdFromMs: 1, createdToMs: 4 })).toStrictEqual([1]);
    expect(await indexesOf({ metadata: { cart: '17' }, limit: 2 })).toStrictEqual([4, 1]);
    expect(await indexesOf({ metadata: { cart: '17' }, after: (await list(merchantId))[3] })).toStrictEqual([0]);
    expect((await list(merchantId)).map(({ metadata }) => metadata)).toStrictEqual(
      orders.map(({ metadata }) => metadata).toReversed(),
    );
  });

  it('listEvents continues after any position, and returns the events of the merchant only', async () => {
    const { store, merchantIds } = opened();
    const [merchantId, other] = await merchantIds();
    const orders = [merchantId, merchantId, other, merchantId].map((id, index) =>
      sampleOrder(id, { order_id: `event-${index}` }),
    );
    await Promise.all(orders.map(create));
    for (const order of orders) {
      const cancelled: Order = { ...order, orderStatus: 'CANCELLED', cancelledAtMs: 1 };
      await store.change({ transition: transitions.cancel, order: cancelled }, timeoutMs);
    }

    const seen: string[] = [];
    let after: EventPosition | undefined;
    const poll = async () => {
      const page = await store.listEvents(merchantId, { after, limit: 1 }, timeoutMs);
      const [event] = page.kind === 'found' ? page.events : [];
      if (event !== undefined) seen.push(event.order.fields.order_id);
      after = event ?? after;
      return seen;
    };
    await expect.poll(poll, { timeout: timeoutMs }).toStrictEqual(['event-0', 'event-1', 'event-3']);
  });
}

/** Texts that databases, drivers and encodings are known to change. Each is valid in every text field without a format. */
const naughtyTexts = {
  'emoji with joiners and skin tones': '👩🏽‍🚀👨‍👩‍👧‍👦🏴󠁧󠁢󠁳󠁣󠁴󠁿🇳🇱1️⃣',
  'right-to-left text with marks': '\u202bשלום \u200fمرحبا\u202c \u2066abc\u2069\u200e',
  quotes: `'single' "double" \`back\` ''twice'' ""twice"" ‘’ “” $$dollar$$`,
  backslashes: String.raw`\ \\ \n \' \" \u0000 \x00 E'\\' C:\temp\ `,
  'combining characters': 'e\u0301 é Z̷̛̹a̶l̵g̸o̸ \u1112\u1161\u11ab 한',
  'astral code points': '𝒜𠜎\u{10ffff}\u{1f600}\u{e0001}',
  noncharacters: '\ufeffx\ufffd\uffff\ufffe\ufdd0',
  'invisible characters and unusual line breaks': '\u200bx\u200d\u2060\u00ad\u2028\u2029\u061c',
  'outer blanks': '  \u00a0 padded \u3000  ',
  'SQL and placeholders': `'; DROP TABLE orders; -- /* $1 ? :name %s %(x)s {0} \${x} */`,
  'array and record literals': '{NULL,"a",b} (1,"x") [1,2) {}',
  'the word NULL': 'NULL',
  'JSON and markup': '{"a":"\\u0000"}<b>&amp;&#0;]]>',
  'one comma': ',',
} as const;
