import type { Call, Response, StoredOrder } from '@order-gateway/order-model/model';
import { expect, test } from 'vitest';
import { orderIdPrefix } from '../workload/orders.ts';
import { examplesMax } from './compare-orders.ts';
import { asSwept, createHistoryChecker, type Deliveries } from './examine.ts';

const seed = 7;
const createdAtMs = 1_795_300_000_000;
const idOf = (number: number) => `${orderIdPrefix(seed)}${number}`;

const unpaid: StoredOrder = {
  identity: '1 token 2026-11-22T10:26:40.000+00:00',
  merchant: '1',
  content: '',
  amount: '10.00',
  currency: 'EUR',
  createdAtMs,
  expiresAtMs: null,
  status: 'UN_PAID',
  payment: null,
  lease: null,
  refused: [],
  reversals: [],
  events: [],
};
const payment = { checkout: '2', paymentId: 'p', paidAtMs: createdAtMs, amount: '10.00', currency: 'EUR' };
const paid: StoredOrder = {
  ...unpaid,
  status: 'PAID',
  payment: { checkout: payment.checkout, paymentId: payment.paymentId, paidAtMs: payment.paidAtMs },
  events: [{ type: 'order.paid', atMs: createdAtMs + 2 }],
};

const during = { fromMs: createdAtMs - 1_000, toMs: createdAtMs + 1_000 };
const creation: Call = {
  request: { kind: 'create', content: '' },
  sentAt: 1,
  receivedAt: 2,
  during,
  response: { outcome: 'created', shown: { status: 'UN_PAID' } },
};
const paying = (response: Response | undefined): Call => ({
  request: { kind: 'pay', payment },
  sentAt: 3,
  receivedAt: 4,
  during,
  response,
});
const ok = paying({ outcome: 'ok', shown: { status: 'PAID', paymentId: 'p' } });
const eventOf = (orderId: string) => ({ orderId, eventId: `of ${orderId}`, type: 'order.paid', createdAtMs }) as const;

/** Returns the result for orders with the numbers 1, 2 and so on, each given as its calls and its stored state. */
function resultOf(...orders: readonly (readonly [calls: Call[], stored: StoredOrder])[]) {
  const checker = createHistoryChecker(new Map(orders.map(([calls], index) => [index + 1, calls])), seed, undefined);
  for (const [index, [, stored]] of orders.entries()) {
    const orderId = idOf(index + 1);
    checker.add(orderId, stored, stored.status === 'PAID' ? [eventOf(orderId)] : []);
  }
  return checker.end(new Set());
}

test('an order is not an error if its calls explain its stored state', () => {
  expect(resultOf([[creation], unpaid], [[creation, ok], paid])).toEqual({
    unexplained: 0,
    undelivered: undefined,
    copies: undefined,
    examples: [],
  });
});

test('an order is counted if its calls do not explain its state, and the shortest history is shown', () => {
  const { unexplained, examples } = resultOf([[creation, ok], unpaid], [[creation], paid], [[creation, ok], unpaid]);
  expect([unexplained, examples.length]).toEqual([3, 1]);
  expect(examples[0]).toMatch(`${idOf(2)}: unexplained\n`);
});

test('an order that was created but is not stored is counted, unless it is already counted as lost', () => {
  const lost = createHistoryChecker(new Map([[1, [creation]]]), seed, undefined);
  expect(lost.end(new Set([1])).unexplained).toBe(0);
  const missing = createHistoryChecker(new Map([[1, [creation]]]), seed, undefined).end(new Set([2]));
  expect(missing.unexplained).toBe(1);
  expect(missing.examples[0]).toMatch(`${idOf(1)}: unexplained\n`);
});

test('a payment that two orders share is an error, even if one order refused it', () => {
  const refused: StoredOrder = {
    ...unpaid,
    events: [{ type: 'order.payment_refused', atMs: createdAtMs + 2 }],
    refused: [{ ...payment, amount: '9.00', code: 'payment_mismatch', refundedAtMs: null }],
  };
  const mismatch: Call = {
    ...ok,
    request: { kind: 'pay', payment: { ...payment, amount: '9.00' } },
    response: { outcome: 'payment_mismatch' },
  };
  const { unexplained, examples } = resultOf([[creation, mismatch], refused], [[creation, ok], paid]);
  expect([unexplained, examples]).toEqual([1, [`${idOf(2)}: shares the payment p with ${idOf(1)}`]]);
});

test('another checkout system may use the same payment id', () => {
  const other = { ...paid, payment: { checkout: '3', paymentId: 'p', paidAtMs: createdAtMs } };
  const byOther = { ...ok, request: { kind: 'pay', payment: { ...payment, checkout: '3' } } } as const;
  expect(resultOf([[creation, ok], paid], [[creation, byOther], other]).unexplained).toBe(0);
});

test('an event that was not delivered, or delivered as another event, is an error; copies are counted', () => {
  const numbers = [1, 2, 3, 4];
  const deliveries: Deliveries = new Map([
    [eventOf(idOf(1)).eventId, { orderId: idOf(1), type: 'order.paid', copies: 3 }],
    [eventOf(idOf(2)).eventId, { orderId: idOf(1), type: 'order.paid', copies: 1 }],
    [eventOf(idOf(3)).eventId, { orderId: idOf(3), type: 'order.cancelled', copies: 1 }],
  ]);
  const checker = createHistoryChecker(new Map(numbers.map((number) => [number, [creation, ok]])), seed, deliveries);
  for (const number of numbers) {
    const stored = { ...paid, payment: { checkout: '2', paymentId: `p${number}`, paidAtMs: createdAtMs } };
    checker.add(idOf(number), stored, [eventOf(idOf(number))]);
  }
  const { undelivered, copies, examples } = checker.end(new Set());
  expect({ undelivered, copies }).toEqual({ undelivered: 3, copies: 2 });
  const [, ...aboutDeliveries] = examples;
  expect(aboutDeliveries).toEqual([
    `${idOf(2)}: order.paid was delivered as another event`,
    `${idOf(3)}: order.paid was delivered as another event`,
    `${idOf(4)}: order.paid was not delivered`,
  ]);
});

test('the number of examples is limited', () => {
  const checker = createHistoryChecker(new Map(), seed, new Map());
  for (let number = 0; number <= examplesMax; number += 1) checker.add(idOf(1), unpaid, [eventOf(idOf(1))]);
  const { undelivered, examples } = checker.end(new Set());
  expect(undelivered).toBe(examplesMax + 1);
  expect(examples.filter((example) => example.includes('not delivered'))).toHaveLength(examplesMax);
});

test.each<[string, Partial<StoredOrder>, Partial<StoredOrder>]>([
  ['an order without an expiry stays unchanged', {}, {}],
  [
    'an order that expired long ago must be stored as expired',
    { expiresAtMs: createdAtMs - 10_000 },
    { status: 'EXPIRED' },
  ],
  ['an order that expired just now may be unpaid', { expiresAtMs: createdAtMs - 9_999 }, {}],
  [
    'an order whose lease ended just now may be unpaid',
    { expiresAtMs: createdAtMs - 20_000, lease: { attempt: 'a', endsAtMs: createdAtMs } },
    {},
  ],
  [
    'an order that expired just now may lack its event',
    { status: 'EXPIRED', expiresAtMs: createdAtMs },
    { events: [{ type: 'order.expired', atMs: createdAtMs }] },
  ],
  [
    'an order that expired long ago may not lack its event',
    { status: 'EXPIRED', expiresAtMs: createdAtMs - 10_000 },
    {},
  ],
  [
    'a stored event is not added again',
    { status: 'EXPIRED', expiresAtMs: createdAtMs, events: [{ type: 'order.expired', atMs: createdAtMs + 5 }] },
    {},
  ],
])('%s', (_, before, changed) => {
  const stored = { ...unpaid, ...before };
  expect(asSwept(stored, createdAtMs)).toEqual({ ...stored, ...changed });
});
