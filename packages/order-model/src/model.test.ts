import { expect, test } from 'vitest';
import type { Call, Request, Response, StoredOrder } from './model.ts';
import { type Reversal, reversalText } from './reversals.ts';
import { findUnexplained } from './search.ts';

// Tests the responses that each promise of the model allows, and those that contradict it. The tests of planted faults
// use histories of random calls, which seldom contain these times and retries.

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const createdAtMs = 100 * minuteMs;
const expiresAtMs = createdAtMs + 30 * minuteMs;

const unpaid: StoredOrder = {
  identity: '7 token',
  merchant: '1',
  content: 'order',
  amount: '10.00',
  currency: 'EUR',
  createdAtMs,
  expiresAtMs,
  status: 'UN_PAID',
  payment: null,
  lease: null,
  refused: [],
  reversals: [],
  events: [],
};

const payment = { checkout: '2', paymentId: 'p-1', paidAtMs: createdAtMs, amount: '10.00', currency: 'EUR' };
const paid: StoredOrder = {
  ...unpaid,
  status: 'PAID',
  payment,
  events: [{ type: 'order.paid', atMs: createdAtMs + minuteMs }],
};
const pending = {
  kind: 'refund',
  reporter: '1',
  id: 'r-1',
  checkout: '2',
  paymentId: 'p-1',
  amount: '4.00',
  currency: 'EUR',
  providerId: null,
  reason: null,
  refundedAtMs: null,
  statuses: ['PENDING'],
} as const satisfies Reversal;
const mismatch = { ...payment, amount: '9.00' };
const refused: StoredOrder = {
  ...unpaid,
  refused: [{ ...mismatch, code: 'payment_mismatch', refundedAtMs: null }],
  events: [{ type: 'order.payment_refused', atMs: createdAtMs + minuteMs }],
};
const cancelled: StoredOrder = {
  ...unpaid,
  status: 'CANCELLED',
  events: [{ type: 'order.cancelled', atMs: createdAtMs + 3 * minuteMs }],
};
const expired: StoredOrder = {
  ...unpaid,
  status: 'EXPIRED',
  events: [{ type: 'order.expired', atMs: expiresAtMs }],
};

/** Returns a call that is sent this many minutes after the creation of the order, and lasts a second. */
function call(minute: number, request: Request, response: Response | string): Call {
  const sentAt = createdAtMs + minute * minuteMs;
  const receivedAt = sentAt + secondMs;
  const during = { fromMs: sentAt, toMs: receivedAt };
  return {
    request,
    sentAt,
    receivedAt,
    during,
    response: typeof response === 'string' ? { outcome: response } : response,
  };
}

/** Returns the expired order with a payment that was refused because it was too late. */
const refusedAsLate = (paidAtMs: number): StoredOrder => ({
  ...expired,
  refused: [{ ...payment, paidAtMs, code: 'order_expired', refundedAtMs: null }],
  events: [...expired.events, { type: 'order.payment_refused', atMs: expiresAtMs + minuteMs }],
});
const dayMinutes = 24 * 60;

const create = { kind: 'create', content: 'order', expiresAtMs } as const;
const created = call(0, create, 'created');
const pay = (changes: Partial<typeof payment> = {}, attempt?: string): Request => {
  return { kind: 'pay', payment: { ...payment, ...changes }, attempt };
};
const payManually: Request = { kind: 'pay', payment: { ...payment, checkout: '1' }, isManual: true, lateDays: 30 };
const shown = (status: StoredOrder['status'], outcome = 'ok'): Response => ({ outcome, shown: { status } });
const withRefused = (status: StoredOrder['status'], refusedIds: readonly string[]): Response => ({
  outcome: 'ok',
  shown: { status, refusedIds },
});
/** The times of a call that may have read the order before the payment of {@link refused} was refused. */
const sentAMinuteIn = {
  sentAt: createdAtMs + minuteMs,
  during: { fromMs: createdAtMs + minuteMs, toMs: createdAtMs + 3 * minuteMs + secondMs },
};
/** The times of a call that was in flight from one minute to four minutes after the creation. */
const endedFourMinutesIn = {
  receivedAt: createdAtMs + 4 * minuteMs,
  during: { fromMs: createdAtMs + minuteMs, toMs: createdAtMs + 4 * minuteMs },
};
const start = (attempt: string): Request => ({ kind: 'start', attempt, leaseMs: 10 * minuteMs });
const started = call(1, start('2/a'), 'ok');
const leaseEndsAtMs = createdAtMs + 11 * minuteMs;
const lease = { attempt: '2/a', endsAtMs: leaseEndsAtMs };
const earliestMs = createdAtMs - 5 * minuteMs;
const latestMs = createdAtMs + 6 * minuteMs;

/** A history, and what its last call may and may not return. */
type Promised = readonly [
  before: Call[],
  stored: StoredOrder | null,
  last: (response: Response | string) => Call,
  allowed: (Response | string)[],
  contradictions: (Response | string)[],
];

const promises: Readonly<Record<string, Promised>> = {
  'a payment that is reported again': [
    [created, call(1, pay(), 'ok')],
    paid,
    (outcome) => call(2, pay(), outcome),
    ['replayed'],
    ['ok', 'payment_id_conflict', 'order_already_paid'],
  ],
  'a payment that is reported again with a different time': [
    [created, call(1, pay(), 'ok')],
    paid,
    (outcome) => call(2, pay({ paidAtMs: createdAtMs + 1 }), outcome),
    ['payment_id_conflict'],
    ['replayed'],
  ],
  'a payment that is reported again with a different amount': [
    [created, call(1, pay(), 'ok')],
    paid,
    (outcome) => call(2, pay({ amount: '9.00' }), outcome),
    ['payment_id_conflict'],
    ['replayed'],
  ],
  'a refused payment that is reported again': [
    [created, call(1, pay(mismatch), 'payment_mismatch')],
    refused,
    (outcome) => call(2, pay(mismatch), outcome),
    ['payment_mismatch'],
    ['replayed', 'payment_id_conflict', 'ok'],
  ],
  'a payment made 5 minutes before the order': [
    [created],
    { ...paid, payment: { ...payment, paidAtMs: earliestMs } },
    (outcome) => call(1, pay({ paidAtMs: earliestMs }), outcome),
    ['ok'],
    ['invalid_request'],
  ],
  'a payment made more than 5 minutes before the order': [
    [created],
    unpaid,
    (outcome) => call(1, pay({ paidAtMs: earliestMs - 1 }), outcome),
    ['invalid_request'],
    ['ok', 'payment_mismatch'],
  ],
  'a payment made 5 minutes in the future': [
    [created],
    { ...paid, payment: { ...payment, paidAtMs: latestMs } },
    (outcome) => call(1, pay({ paidAtMs: latestMs }), outcome),
    ['ok'],
    ['invalid_request'],
  ],
  'a payment made 5 minutes after the call ended': [
    [created],
    unpaid,
    (outcome) => call(1, pay({ paidAtMs: latestMs + secondMs }), outcome),
    ['invalid_request'],
    ['ok'],
  ],
  'a payment made more than 5 minutes in the future': [
    [created],
    unpaid,
    (outcome) => call(1, pay({ paidAtMs: latestMs + secondMs + 1 }), outcome),
    ['invalid_request'],
    ['ok', 'order_expired'],
  ],
  'a payment whose time may be more than 5 minutes in the future': [
    [created],
    unpaid,
    (outcome) => call(1, pay({ paidAtMs: latestMs + 1 }), outcome),
    ['invalid_request'],
    ['ok', 'order_expired'],
  ],
  'a payment for a cancelled order whose time may be more than 5 minutes in the future': [
    [created, call(3, { kind: 'cancel' }, 'ok')],
    cancelled,
    (outcome) => call(4, pay({ paidAtMs: createdAtMs + 9 * minuteMs + 1 }), outcome),
    ['invalid_request'],
    ['order_cancelled'],
  ],
  'a payment whose time is at most 5 minutes in the future': [
    [created],
    unpaid,
    (outcome) => call(1, pay({ paidAtMs: latestMs }), outcome),
    [],
    ['invalid_request'],
  ],
  'a payment that is stored although it was reported after more than a day': [
    [created],
    { ...paid, events: [...expired.events, { type: 'order.paid', atMs: expiresAtMs + 2 * dayMinutes * minuteMs }] },
    (outcome) => call(31 + dayMinutes, pay(), outcome),
    [],
    ['ok', 'order_expired'],
  ],
  'a refund, with what the response shows': [
    [created, call(1, pay(), 'ok')],
    { ...paid, reversals: [{ ...pending, statuses: [{ status: 'PENDING', atMs: createdAtMs + 2 * minuteMs }] }] },
    (response) => call(2, { kind: 'refund', refundId: 'r-1', amount: '4.00' }, response),
    [{ outcome: 'created', reversal: reversalText(pending) }],
    [{ outcome: 'created', reversal: reversalText({ ...pending, amount: '5.00' }) }],
  ],
  'a payment made before the expiry and reported within a day': [
    [created],
    { ...paid, events: [...expired.events, { type: 'order.paid', atMs: expiresAtMs + 2 }] },
    (outcome) => call(30 + dayMinutes, pay(), outcome),
    ['ok'],
    ['replayed', 'order_expired'],
  ],
  'a payment made before the expiry, reported within a day and stored as refused': [
    [created],
    refusedAsLate(createdAtMs),
    (outcome) => call(29 + dayMinutes, pay(), outcome),
    [],
    ['order_expired'],
  ],
  'a payment made before the expiry and reported after more than a day': [
    [created],
    refusedAsLate(createdAtMs),
    (outcome) => call(31 + dayMinutes, pay(), outcome),
    ['order_expired'],
    ['ok', 'payment_mismatch'],
  ],
  'a payment made before the expiry, which the account can report for 7 days': [
    [created],
    { ...paid, events: [...expired.events, { type: 'order.paid', atMs: expiresAtMs + 2 }] },
    (outcome) => call(30 + 7 * dayMinutes, { kind: 'pay', payment, lateDays: 7 }, outcome),
    ['ok'],
    ['order_expired'],
  ],
  'a payment that the merchant reports while another one is in progress': [
    [created, { ...started, response: { outcome: 'ok', leaseEndsAtMs } }],
    { ...unpaid, lease },
    (outcome) => call(2, payManually, outcome),
    ['payment_in_progress'],
    ['ok', 'order_expired'],
  ],
  'a payment that the merchant reports for an order with another amount': [
    [created],
    { ...paid, amount: '1.00', payment: { ...payment, checkout: '1' } },
    (outcome) => call(1, payManually, outcome),
    ['ok'],
    ['payment_mismatch', 'order_already_paid'],
  ],
  'a payment that the merchant reports for a cancelled order': [
    [created, call(3, { kind: 'cancel' }, 'ok')],
    cancelled,
    (outcome) => call(4, payManually, outcome),
    ['order_cancelled'],
    ['ok', 'payment_in_progress'],
  ],
  'a payment that the merchant reports after 30 days': [
    [created],
    expired,
    (outcome) => call(31 + 30 * dayMinutes, payManually, outcome),
    ['order_expired'],
    ['ok'],
  ],
  'a payment made at the expiry': [
    [created],
    refusedAsLate(expiresAtMs),
    (outcome) => call(31, pay({ paidAtMs: expiresAtMs }), outcome),
    ['order_expired'],
    ['ok'],
  ],
  'a payment in another currency': [
    [created],
    paid,
    (outcome) => call(1, pay({ currency: 'USD' }), outcome),
    [],
    ['ok', 'payment_mismatch'],
  ],
  'an order that is created so late that its expiry may be less than a minute ahead': [
    [],
    null,
    (outcome) => call(24.5, create, outcome),
    ['invalid_order'],
    ['created', 'not_found'],
  ],
  'an order that is created early enough': [[], null, (outcome) => call(23, create, outcome), [], ['invalid_order']],
  'an order that never expires': [
    [],
    null,
    (outcome) => call(24.5, { ...create, expiresAtMs: null }, outcome),
    [],
    ['invalid_order'],
  ],
  'a cancellation after a payment of the attempt with the lease was refused': [
    [created, started, call(2, pay(mismatch, '2/a'), 'payment_mismatch')],
    { ...cancelled, refused: refused.refused, events: [...refused.events, ...cancelled.events] },
    (outcome) => call(3, { kind: 'cancel' }, outcome),
    ['ok'],
    ['replayed', 'payment_in_progress'],
  ],
  'a cancellation that reads the order before a payment is refused': [
    [created, { ...call(1, pay(mismatch), 'payment_mismatch'), receivedAt: createdAtMs + 4 * minuteMs }],
    { ...cancelled, refused: refused.refused, events: [...refused.events, ...cancelled.events] },
    (outcome) => ({ ...call(3, { kind: 'cancel' }, outcome), ...sentAMinuteIn }),
    [withRefused('CANCELLED', []), withRefused('CANCELLED', ['p-1'])],
    [withRefused('CANCELLED', ['p-2']), withRefused('CANCELLED', ['p-1', 'p-2'])],
  ],
  'a cancellation after a payment was refused': [
    [created, call(1, pay(mismatch), 'payment_mismatch')],
    { ...cancelled, refused: refused.refused, events: [...refused.events, ...cancelled.events] },
    (outcome) => call(3, { kind: 'cancel' }, outcome),
    [withRefused('CANCELLED', ['p-1'])],
    [withRefused('CANCELLED', [])],
  ],
  'a read after a call has refused a payment, and before the same call ends the lease': [
    [
      created,
      { ...call(1, pay(mismatch, '2/a'), 'payment_mismatch'), ...endedFourMinutesIn },
      call(2, start('2/a'), 'ok'),
    ],
    { ...refused, lease: { attempt: '2/a', endsAtMs: createdAtMs + 3 * minuteMs } },
    (response) => call(1.5, { kind: 'read' }, response),
    [withRefused('UN_PAID', ['p-1'])],
    [withRefused('UN_PAID', ['p-2'])],
  ],
  'a cancellation after a payment that named no attempt was refused': [
    [created, started, call(2, pay(mismatch), 'payment_mismatch')],
    { ...refused, lease },
    (outcome) => call(3, { kind: 'cancel' }, outcome),
    ['payment_in_progress'],
    ['ok'],
  ],
  'a start while another attempt has the lease': [
    [created, { ...started, response: { outcome: 'ok', leaseEndsAtMs } }],
    { ...unpaid, lease },
    (outcome) => call(10.9, start('3/a'), outcome),
    ['payment_in_progress'],
    ['ok', 'order_expired'],
  ],
  'a start after the lease of another attempt ended': [
    [created, { ...started, response: { outcome: 'ok', leaseEndsAtMs } }],
    { ...unpaid, lease: { attempt: '3/a', endsAtMs: createdAtMs + 21 * minuteMs } },
    (outcome) => call(11, start('3/a'), outcome),
    ['ok'],
    ['payment_in_progress'],
  ],
  'the end of a payment that has already ended': [
    [created, started, call(2, { kind: 'end', attempt: '2/a' }, 'ok')],
    { ...unpaid, lease: { attempt: '2/a', endsAtMs: createdAtMs + 2 * minuteMs } },
    (outcome) => call(3, { kind: 'end', attempt: '2/a' }, outcome),
    ['replayed'],
    ['ok'],
  ],
  'the end of a payment, with the status of the order': [
    [created, started],
    { ...unpaid, lease: { attempt: '2/a', endsAtMs: createdAtMs + 2 * minuteMs } },
    (outcome) => call(2, { kind: 'end', attempt: '2/a' }, outcome),
    [shown('UN_PAID')],
    [shown('PAID'), shown('CANCELLED')],
  ],
  'a read just before the expiry': [
    [created],
    expired,
    (outcome) => call(29, { kind: 'read' }, outcome),
    [shown('UN_PAID')],
    [shown('EXPIRED')],
  ],
  'a read at the expiry': [
    [created],
    expired,
    (outcome) => call(30, { kind: 'read' }, outcome),
    [shown('EXPIRED')],
    [shown('UN_PAID')],
  ],
  'a read after an early expiry': [
    [created, call(2, { kind: 'expire' }, 'ok')],
    {
      ...expired,
      expiresAtMs: createdAtMs + 2 * minuteMs,
      events: [{ type: 'order.expired', atMs: createdAtMs + 2 * minuteMs }],
    },
    (outcome) => call(3, { kind: 'read' }, outcome),
    [shown('EXPIRED')],
    [shown('UN_PAID'), shown('PAID')],
  ],
  'an early expiry of an order that is paid': [
    [created, call(1, pay(), 'ok')],
    paid,
    (outcome) => call(2, { kind: 'expire' }, outcome),
    ['order_already_paid'],
    ['ok'],
  ],
};

const isExplained = (calls: readonly Call[], stored: StoredOrder | null) =>
  findUnexplained({ calls, stored }) === undefined;

test.each(Object.entries(promises))(
  'the model explains only allowed responses to %s',
  (_, [before, stored, last, allowed, contradictions]) => {
    const explained = (outcomes: (Response | string)[]) =>
      outcomes.filter((outcome) => isExplained([...before, last(outcome)], stored));
    expect(explained(allowed)).toEqual(allowed);
    expect(explained(contradictions)).toEqual([]);
  },
);

test.each<[string, Call[], StoredOrder | null, StoredOrder | null]>([
  ['that was created', [created], unpaid, null],
  ['with its content', [created], unpaid, { ...unpaid, content: 'another order' }],
  ['with its payment', [created, call(1, pay(), 'ok')], paid, { ...paid, payment: { ...payment, paymentId: 'p-2' } }],
  [
    'with the time of its payment',
    [created, call(1, pay(), 'ok')],
    paid,
    { ...paid, payment: { ...payment, paidAtMs: 1 } },
  ],
  ['with its lease', [created, started], { ...unpaid, lease }, unpaid],
  [
    'with the end of its lease',
    [created, { ...started, response: { outcome: 'ok', leaseEndsAtMs } }],
    { ...unpaid, lease },
    { ...unpaid, lease: { ...lease, endsAtMs: leaseEndsAtMs + 1 } },
  ],
  ['that is unpaid', [created], unpaid, { ...unpaid, status: 'PAID' }],
])('calls are explained only by an order %s', (_, calls, right, wrong) => {
  expect(isExplained(calls, right)).toBe(true);
  expect(isExplained(calls, wrong)).toBe(false);
});

/** Returns a call whose response is unknown: it may take effect at any later time, or never. */
function unanswered(minute: number, request: Request): Call {
  const sent = call(minute, request, '');
  return { ...sent, receivedAt: Infinity, during: { ...sent.during, toMs: Infinity }, response: undefined };
}

test('a call and its repetition, both without a response, can both take effect', () => {
  const lapsed = { ...unpaid, lease: { attempt: '2/a', endsAtMs: createdAtMs + 24.5 * minuteMs } };
  const before = [created, unanswered(1, start('2/a')), call(2, start('2/b'), 'payment_in_progress')];
  const after = [
    call(13, start('2/b'), 'ok'),
    call(14, { kind: 'end', attempt: '2/b' }, 'ok'),
    call(15, start('2/c'), 'payment_in_progress'),
  ];
  expect(isExplained([...before, unanswered(1.5, start('2/a')), ...after], lapsed)).toBe(true);
  expect(isExplained([...before, ...after], lapsed)).toBe(false);
});

test('an attempt that ended never claims the order again, even if its lease had ended before', () => {
  const lease = { attempt: '2/a', endsAtMs: createdAtMs + 11 * minuteMs };
  const ended = [created, started, call(12, { kind: 'end', attempt: '2/a' }, 'replayed')];
  expect(isExplained([...ended, call(13, start('2/a'), 'payment_attempt_ended')], { ...unpaid, lease })).toBe(true);
  const lost = [created, unanswered(1, start('2/a')), ...ended.slice(2)];
  expect(isExplained([...lost, call(13, start('2/a'), 'payment_attempt_ended')], { ...unpaid, lease })).toBe(true);
  const endsAgain = { attempt: '2/a', endsAtMs: createdAtMs + 23 * minuteMs };
  expect(isExplained([...ended, call(13, start('2/a'), 'ok')], { ...unpaid, lease: endsAgain })).toBe(false);
  expect(isExplained([created, started, call(13, start('2/a'), 'payment_attempt_ended')], { ...unpaid, lease })).toBe(
    false,
  );
});

test('a refused payment without a response ends the lease of its attempt, whether another payment of it arrived or not', () => {
  const lostPayment = unanswered(2, pay({ ...mismatch, paymentId: 'p-2' }, '2/a'));
  const others = [created, started, lostPayment, call(3, start('2/b'), 'ok')];
  const stored = { ...refused, lease: { attempt: '2/b', endsAtMs: createdAtMs + 13 * minuteMs } };
  expect(isExplained([...others, unanswered(2.5, pay(mismatch, '2/a'))], stored)).toBe(true);
  expect(isExplained([...others, unanswered(2.5, pay(mismatch))], stored)).toBe(false);
});

test('a lookup that stores the expiry may show no payment that was refused in the meantime', () => {
  const late = { ...refused, ...expired, refused: refused.refused, events: [...refused.events, ...expired.events] };
  const lookup = call(0.5, { kind: 'read' }, withRefused('EXPIRED', []));
  const during = { ...lookup.during, toMs: expiresAtMs };
  const calls = [created, { ...lookup, receivedAt: expiresAtMs, during }, call(1, pay(mismatch), 'payment_mismatch')];
  expect(isExplained(calls, late)).toBe(true);
});

test('an operator may find an order past its expiry before the expiry is stored', () => {
  const swept = { ...expired, events: [{ type: 'order.expired' as const, atMs: expiresAtMs + minuteMs }] };
  const failRefund = (minute: number, outcome: string) =>
    call(minute, { kind: 'fail refund', refundId: 'r-1' }, outcome);
  expect(isExplained([created, failRefund(30.5, 'not_pending')], swept)).toBe(true);
  expect(isExplained([created, failRefund(30.5, 'ok')], swept)).toBe(false);
  expect(isExplained([created, call(30.5, { kind: 'read' }, shown('UN_PAID'))], swept)).toBe(false);
});

test('the search ends although four attempts to pay were each sent 100 times without a response', () => {
  const repeated = Array.from({ length: 100 }, (_, index) =>
    ['2/a', '2/b', '3/a', '3/b'].map((attempt) => unanswered(1 + index / 120, start(attempt))),
  ).flat();
  const calls = [created, ...repeated, call(2, start('3/a'), 'ok')];
  const stored = { ...unpaid, lease: { attempt: '3/a', endsAtMs: createdAtMs + 12 * minuteMs } };
  expect(isExplained(calls, stored)).toBe(true);
  expect(isExplained(calls, { ...stored, lease: null })).toBe(false);
});
