import { expect, test } from 'vitest';
import { auditErrors, formatAudit } from './audit.ts';
import { auditStates, type Deliveries, type OrderLife } from './audit-states.ts';
import type { JournalEntry } from './journal.ts';

type Status = JournalEntry['status'];
type Events = OrderLife['events'];

const orderIdOf = (number: number) => `order-${number}`;
const paid = { eventId: 'evt_1', type: 'order.paid' } as const;
const expired = { eventId: 'evt_2', type: 'order.expired' } as const;
const cancelled = { eventId: 'evt_3', type: 'order.cancelled' } as const;

function seen(status: Status, scheduledMs: number, more: Partial<JournalEntry> = {}): JournalEntry {
  return { number: 1, status, scheduledMs, receivedMs: scheduledMs + 10, ...more };
}

function audit(entries: JournalEntry[], status: Status, events: Events, more?: Partial<OrderLife>, got?: Deliveries) {
  const paymentId = status === 'PAID' ? 'p' : undefined;
  const life = { status, paymentId, refusedIds: [], isLeased: false, isJustExpired: false, events, ...more };
  const lives = new Map([['order-1', life]]);
  const { examples, ...counts } = auditStates(entries, orderIdOf, lives, got);
  const errors = counts.undone + counts.backwards + counts.illegal + (counts.undelivered ?? 0);
  expect(examples).toHaveLength(errors);
  return counts;
}

const none = { undone: 0, backwards: 0, illegal: 0, undelivered: undefined, copies: undefined };

test.for([
  ['UN_PAID', [], 0],
  ['PAID', [paid], 1],
  ['PAID', [expired, paid], 1],
  ['EXPIRED', [expired], 0],
  ['CANCELLED', [cancelled], 1],
] as const)('%s after %j is a legal life', ([status, events, changes]) => {
  const entries = [seen('UN_PAID', 0), seen(status, 20)];
  expect(audit(entries, status, events)).toEqual({ ...none, changes });
});

test.for([
  ['UN_PAID', [paid]],
  ['PAID', []],
  ['PAID', [paid, paid]],
  ['PAID', [paid, expired]],
  ['PAID', [cancelled, paid]],
  ['EXPIRED', []],
  ['EXPIRED', [expired, expired]],
  ['CANCELLED', [cancelled, paid]],
  ['CANCELLED', [expired, cancelled]],
] as const)('%s after %j is illegal', ([status, events]) => {
  expect(audit([], status, events)).toEqual({ ...none, changes: 0, illegal: 1 });
});

test('an order that has just expired needs no event yet', () => {
  expect(audit([], 'EXPIRED', [], { isJustExpired: true })).toMatchObject({ illegal: 0 });
  expect(audit([], 'CANCELLED', [], { isJustExpired: true })).toMatchObject({ illegal: 1 });
});

test('each refused payment has one event, and has not paid the order', () => {
  const refused = { eventId: 'evt_4', type: 'order.payment_refused' } as const;
  expect(audit([], 'PAID', [paid, refused], { refusedIds: ['q'] })).toMatchObject({ illegal: 0 });
  expect(audit([], 'UN_PAID', [refused, refused], { refusedIds: ['q', 'r'] })).toMatchObject({ illegal: 0 });
  expect(audit([], 'PAID', [paid], { refusedIds: ['q'] })).toMatchObject({ illegal: 1 });
  expect(audit([], 'PAID', [paid, refused])).toMatchObject({ illegal: 1 });
  expect(audit([], 'PAID', [paid, refused], { refusedIds: ['p'] })).toMatchObject({ illegal: 1 });
});

test('a lease does not outlive the payment or the cancellation of its order', () => {
  expect(audit([], 'UN_PAID', [], { isLeased: true })).toMatchObject({ illegal: 0 });
  expect(audit([], 'EXPIRED', [expired], { isLeased: true })).toMatchObject({ illegal: 0 });
  expect(audit([], 'PAID', [paid], { isLeased: true })).toMatchObject({ illegal: 1 });
  expect(audit([], 'CANCELLED', [cancelled], { isLeased: true })).toMatchObject({ illegal: 1 });
});

test('an acknowledged change that is not stored is undone', () => {
  expect(audit([seen('PAID', 0)], 'CANCELLED', [cancelled])).toMatchObject({ changes: 1, undone: 1 });
  expect(audit([seen('PAID', 0)], 'UN_PAID', [])).toMatchObject({ undone: 1 });
  expect(audit([seen('EXPIRED', 0)], 'CANCELLED', [cancelled])).toMatchObject({ changes: 0, undone: 1 });
  expect(audit([seen('PAID', 0, { paymentId: 'q' })], 'PAID', [paid])).toMatchObject({ undone: 1 });
  expect(audit([seen('PAID', 0, { paymentId: 'p' })], 'PAID', [paid])).toMatchObject({ undone: 0 });
});

test('a call sent after a later status was shown must not return an earlier one, but concurrent calls may', () => {
  const [first, crossing, after] = [seen('PAID', 0), seen('UN_PAID', 9), seen('UN_PAID', 10)];
  expect(audit([crossing, first], 'PAID', [paid])).toMatchObject({ backwards: 0 });
  expect(audit([after, first], 'PAID', [paid])).toMatchObject({ backwards: 1 });
  expect(audit([seen('EXPIRED', 0), seen('PAID', 20)], 'PAID', [expired, paid])).toMatchObject({ backwards: 0 });
});

test('every event must be delivered as itself, and copies are counted', () => {
  const delivery = { orderId: 'order-1', type: 'order.paid', copies: 3 };
  const delivered = (...some: [string, typeof delivery][]) => audit([], 'PAID', [paid], {}, new Map(some));
  expect(delivered(['evt_1', delivery])).toMatchObject({ undelivered: 0, copies: 2 });
  expect(delivered()).toMatchObject({ undelivered: 1, copies: 0 });
  expect(delivered(['evt_1', { ...delivery, orderId: 'order-2' }])).toMatchObject({ undelivered: 1 });
  expect(delivered(['evt_1', { ...delivery, type: 'order.expired' }])).toMatchObject({ undelivered: 1 });
});

test('every error about states fails the audit and is shown', () => {
  const orders = { acknowledged: 1, stored: 1, unacknowledged: 0, lost: 0, duplicated: 0, changed: 0, unreadable: 0 };
  const fine = { ...orders, ...none, changes: 0, examples: [] };
  expect(auditErrors(fine)).toBe(0);
  for (const name of ['undone', 'backwards', 'illegal', 'undelivered']) {
    expect(auditErrors({ ...fine, [name]: 1 })).toBe(1);
    expect(formatAudit(fine)).toContain(name);
  }
});
