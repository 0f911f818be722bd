import { expect, test } from 'vitest';
import { callsByOrder } from './histories.ts';
import type { JournaledCall, ShownOrder } from './journal.ts';

const head = { started_at_ms: 1_795_300_000_000 };
const accountOf = (clientId: string) => `account of ${clientId}`;
const created = { service_order_id: 5, order_token: 'token', created_at: '2026-11-22T10:26:40.000+00:00' };
const identity = '5 token 2026-11-22T10:26:40.000+00:00';
const payment = { checkout: 'pos_1', paymentId: 'p', paidAtMs: 1, amount: '10.00', currency: 'EUR' };
const attempt = { checkout: 'pos_1', attemptId: 'a' };

const shown = (members: Partial<ShownOrder> = {}): ShownOrder => ({
  number: 3,
  status: 'UN_PAID',
  ...created,
  ...members,
});

/** A call about order 3 whose response shows these orders. */
function callOf(request: JournaledCall['request'], orders: ShownOrder[] = [], outcome = 'ok'): JournaledCall {
  return { call: 1, sentMs: 100, number: 3, request, response: { call: 1, receivedMs: 250, outcome, shown: orders } };
}

const callsOf = (...calls: JournaledCall[]) => callsByOrder(head, calls, accountOf);
const [firstOf, responseOf] = [
  (call: JournaledCall) => callsOf(call).get(3)?.[0],
  (call: JournaledCall) => firstOf(call)?.response,
];

test('a call has its times since the start of the run, and the period in which the database may have executed it', () => {
  expect(firstOf(callOf({ kind: 'create' }, [shown()], 'created'))).toEqual({
    request: { kind: 'create', content: '' },
    sentAt: 100,
    receivedAt: 250,
    during: { fromMs: 1_795_299_995_100, toMs: 1_795_300_005_250 },
    response: { outcome: 'created', shown: { status: 'UN_PAID' }, leaseEndsAtMs: undefined },
  });
});

test.each<[string, JournaledCall]>([
  ['without a response', { call: 1, sentMs: 100, number: 3, request: { kind: 'cancel' } }],
  ['with an outcome that does not show whether it had an effect', callOf({ kind: 'cancel' }, [], 'unavailable')],
])('a call %s may take effect at any later time', (_, call) => {
  expect(firstOf(call)).toMatchObject({
    sentAt: 100,
    receivedAt: Number.POSITIVE_INFINITY,
    response: undefined,
    during: { fromMs: 1_795_299_995_100, toMs: Number.POSITIVE_INFINITY },
  });
});

test.each([
  ...['created', 'replayed', 'ok', 'not_found', 'order_id_conflict', 'payment_id_conflict', 'payment_in_progress'],
  ...['order_already_paid', 'order_cancelled', 'order_expired', 'payment_mismatch', 'invalid_request'],
  ...['order_not_paid', 'refund_id_conflict', 'refund_exceeds_payment', 'refunds_not_supported'],
])('the effect of a call with the outcome %s is known', (outcome) => {
  expect(responseOf(callOf({ kind: 'cancel' }, [], outcome))).toMatchObject({ outcome });
});

test('payments and attempts have the account of their checkout system', () => {
  expect(firstOf(callOf({ kind: 'pay', payment, attempt }))?.request).toEqual({
    kind: 'pay',
    payment: { ...payment, checkout: 'account of pos_1' },
    attempt: 'account of pos_1/a',
  });
  expect(firstOf(callOf({ kind: 'pay', payment }))?.request).toMatchObject({ attempt: undefined });
  const start = { kind: 'start', attempt, leaseMs: 60_000 } as const;
  expect(firstOf(callOf(start))?.request).toEqual({ ...start, attempt: 'account of pos_1/a' });
  expect(firstOf(callOf({ kind: 'end', attempt }))?.request).toEqual({ kind: 'end', attempt: 'account of pos_1/a' });
  expect(firstOf(callOf({ kind: 'read' }))?.request).toEqual({ kind: 'read' });
});

test('a report of a refund has the account of its checkout system, and only a read shows all refunds and disputes', () => {
  const key = { kind: 'record refund', paymentId: 'p', refundId: 'r', providerId: null } as const;
  const report = { ...key, checkout: 'pos_1', amount: '1.00', status: 'FAILED' } as const;
  const call = callOf(report);
  const response = { ...(call.response as NonNullable<typeof call.response>), reversal: 'refund r' };
  expect(firstOf({ ...call, response })).toMatchObject({
    request: { ...report, checkout: 'account of pos_1' },
    response: { outcome: 'ok', reversal: 'refund r' },
  });
  const refunded = shown({ status: 'PAID', reversals: ['refund r'] });
  expect(responseOf(callOf({ kind: 'read' }, [refunded]))?.shown?.reversals).toEqual(['refund r']);
  expect(responseOf(callOf({ kind: 'cancel' }, [refunded]))?.shown?.reversals).toBeUndefined();
});

test('a merchant’s response shows the whole order, the response to a payment its status and payment, and others its status', () => {
  const paid = shown({ status: 'PAID', paymentId: 'p', refusedIds: ['q'] });
  const whole = { status: 'PAID', paymentId: 'p', identity, refusedIds: ['q'] };
  expect(responseOf(callOf({ kind: 'read' }, [paid]))?.shown).toEqual(whole);
  expect(responseOf(callOf({ kind: 'cancel' }, [paid]))?.shown).toEqual(whole);
  expect(responseOf(callOf({ kind: 'read' }, [shown()]))?.shown).toEqual({
    status: 'UN_PAID',
    paymentId: null,
    identity,
  });
  expect(responseOf(callOf({ kind: 'pay', payment }, [paid]))?.shown).toEqual({ status: 'PAID', paymentId: 'p' });
  expect(responseOf(callOf({ kind: 'pay', payment }, [shown()]))?.shown).toEqual({
    status: 'UN_PAID',
    paymentId: null,
  });
  expect(responseOf(callOf({ kind: 'end', attempt }, [paid]))?.shown).toEqual({ status: 'PAID' });
  for (const missing of ['order_token', 'created_at']) {
    const { [missing as keyof ShownOrder]: _, ...partly } = paid;
    expect(responseOf(callOf({ kind: 'read' }, [partly as ShownOrder]))?.shown).toEqual({ status: 'PAID' });
  }
});

test('the response to a start has the end of the lease', () => {
  const call = callOf({ kind: 'start', attempt, leaseMs: 60_000 }, [shown()]);
  const response = { ...(call.response as NonNullable<typeof call.response>), leaseEndsAtMs: 9 };
  expect(responseOf({ ...call, response })).toEqual({ outcome: 'ok', shown: { status: 'UN_PAID' }, leaseEndsAtMs: 9 });
});

test('a successful list counts as a read of each order that it shows', () => {
  const list = (outcome: string): JournaledCall => {
    const { number: _, ...call } = callOf({ kind: 'read' }, [shown(), shown({ number: 4, status: 'PAID' })], outcome);
    return call;
  };
  const calls = callsOf(list('ok'));
  expect([...calls.keys()]).toEqual([3, 4]);
  expect(calls.get(4)).toEqual([
    {
      request: { kind: 'read' },
      sentAt: 100,
      receivedAt: 250,
      during: { fromMs: 1_795_299_995_100, toMs: 1_795_300_005_250 },
      response: { outcome: 'ok', shown: { status: 'PAID', paymentId: null, identity } },
    },
  ]);
  expect(callsOf(list('unavailable')).size).toBe(0);
});

test('the calls about an order keep the sequence of the journal', () => {
  const calls = callsOf(callOf({ kind: 'create' }), callOf({ kind: 'cancel' }));
  expect(calls.get(3)?.map(({ request }) => request.kind)).toEqual(['create', 'cancel']);
});
