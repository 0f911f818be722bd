import { JsonNumber } from '@order-gateway/fixtures';
import { expect, test } from 'vitest';
import type { LoadCall } from '../calls/call-maker.ts';
import type { Reply } from '../calls/sender.ts';
import { createRecorder } from './recorder.ts';

function call(number: number): LoadCall {
  const order = { number, orderId: `load-1-${number}` };
  const about = { protocol: 'json', operation: 'CreateOrder', method: 'POST', path: '/order' } as const;
  return { ...about, headers: {}, bytes: undefined, request: {}, order, expected: ['created'] };
}

function acknowledged(number: number, more = {}) {
  const ids = { order_id: `load-1-${number}`, service_order_id: number, order_token: `t${number}`, created_at: '' };
  const order = { ...ids, order_status: 'UN_PAID', payment_link: `http://localhost/payment/t${number}` } as const;
  return { outcome: 'created', orders: [{ ...order, ...more }] };
}

test('an acknowledgement that could not be written to the journal is not counted, and the failure is reported', () => {
  let written = 0;
  let isFull = false;
  const failures: unknown[] = [];
  const write = (lines: readonly object[]) => {
    if (isFull) throw new Error('the disk is full');
    written += lines.filter((line) => 'outcome' in line).length;
  };
  const onFailure = (error: unknown) => failures.push(error);
  const recorder = createRecorder({ plannedSeconds: 1, journal: { write }, onFailure });
  const send = (number: number, isFullThen = false) => {
    const sent = call(number);
    recorder.recordSent(sent, 0, 0);
    isFull = isFullThen;
    recorder.recordReply(sent, acknowledged(number), 5, 5);
  };
  send(1, true);
  recorder.end();
  expect(failures).toMatchObject([{ message: 'the disk is full' }]);
  isFull = false;
  for (const number of [2, 3]) send(number);
  recorder.end();
  expect(written).toBe(2);
  expect(recorder).toMatchObject({ sent: 3, done: 2, errors: 0 });
});

test('wrong outcomes, responses about other orders and calls without a response are errors', () => {
  const recorder = createRecorder({ plannedSeconds: 3 });
  for (let sent = 0; sent < 5; sent += 1) recorder.recordSent(call(1), 2_000, 1);
  recorder.recordDropped(2_001);
  recorder.recordReply(call(1), acknowledged(1), 2_005, 5);
  recorder.recordReply(call(2), acknowledged(1), 2_005, 5);
  recorder.recordReply(call(3), { outcome: 'overloaded' }, 2_700, 700);
  recorder.recordReply(call(4), acknowledged(4, { payment_link: 'http://localhost/payment/other' }), 2_700, 7);
  recorder.end();
  expect(recorder).toMatchObject({ sent: 5, done: 4, right: 1, errors: 4, unanswered: 1, dropped: 1, pending: 0 });
  const outcomes = ['created', 'response about another order', 'overloaded', 'payment_link without the token'];
  expect([...recorder.outcomes.keys()]).toEqual(outcomes);
  expect(recorder.latencies.max).toBeCloseTo(700, 0);
  expect(recorder.seconds().map(({ done, wrong }) => [done, wrong])).toEqual([
    [0, 0],
    [0, 0],
    [4, 4],
  ]);
});

test('the success of a call that must fail is an error', () => {
  const recorder = createRecorder({ plannedSeconds: 1 });
  recorder.recordSent(call(1), 0, 0);
  recorder.recordReply({ ...call(1), order: undefined, expected: ['invalid_order'] }, acknowledged(1), 1, 1);
  recorder.end();
  expect(recorder).toMatchObject({ errors: 1, right: 0 });
});

test('each second has its own percentiles', () => {
  const recorder = createRecorder({ plannedSeconds: 3 });
  for (const [second, ms] of [10, 30, 20].entries()) {
    for (const number of [1, 2]) {
      recorder.recordSent(call(1), second * 1_000, 0);
      recorder.recordReply(call(number), acknowledged(number), second * 1_000 + ms, ms);
    }
    recorder.end();
  }
  const seconds = recorder.seconds();
  expect(seconds).toMatchObject([0, 1, 2].map((second) => ({ second, sent: 2, done: 2 })));
  expect(seconds.map(({ max_ms }) => Math.round(max_ms ?? 0))).toEqual([10, 30, 20]);
  expect(recorder.byProtocol.get('json')?.percentile(50)).toBeCloseTo(20, 1);
});

test('responses after the planned end count in the last second, so that no second without calls follows it', () => {
  const recorder = createRecorder({ plannedSeconds: 2 });
  for (const scheduledMs of [0, 500, 1_000, 1_999]) {
    recorder.recordSent(call(1), scheduledMs, 0);
    recorder.recordReply(call(1), acknowledged(1), scheduledMs + 300, 300);
    recorder.end();
  }
  expect(recorder.seconds()).toMatchObject([
    { second: 0, sent: 2, done: 2 },
    { second: 1, sent: 2, done: 2 },
  ]);
});

test('a second without calls is reported, with zero calls sent', () => {
  const recorder = createRecorder({ plannedSeconds: 4 });
  for (const atMs of [0, 3_000]) recorder.recordSent(call(1), atMs, 0);
  expect(recorder.seconds().map(({ sent }) => sent)).toEqual([1, 0, 0, 1]);
});

test('a rejected connection has no latency, and a call that timed out has a long one', () => {
  const recorder = createRecorder({ plannedSeconds: 1 });
  for (const [number, outcome] of ['created', 'no response: ECONNREFUSED', 'no response: timeout'].entries()) {
    recorder.recordSent(call(1), 0, 0);
    recorder.recordReply(call(number), { outcome }, 5, number === 2 ? 10_000 : 5);
  }
  recorder.end();
  expect(recorder).toMatchObject({ sent: 3, done: 1, right: 1, errors: 2 });
  expect(recorder.latencies.count).toBe(2);
  expect(recorder.latencies.percentile(99)).toBeGreaterThanOrEqual(10_000);
  expect(recorder.seconds()).toMatchObject([{ done: 1, wrong: 2 }]);
});

test('the journal gets each call about orders, and what its response shows', () => {
  const lines: unknown[] = [];
  const journal = { write: (some: readonly unknown[]) => void lines.push(...some) };
  const numberOf = (orderId: string) => (orderId.startsWith('load-1-') ? Number(orderId.slice(7)) : undefined);
  const recorder = createRecorder({ plannedSeconds: 1, journal, numberOf });
  const [shown] = acknowledged(1).orders;
  const [other] = acknowledged(7, { order_id: 'another', order_status: 'PAID' }).orders;
  if (shown === undefined || other === undefined) throw new Error('there is no order');
  const send = (operation: LoadCall['operation'], reply: Reply, more: Partial<LoadCall> = {}) => {
    const sent = { ...call(1), operation, ...more };
    recorder.recordSent(sent, 3.9, 0);
    recorder.recordReply(sent, reply, 8.1, 5);
    recorder.end();
  };
  const request = {
    order_token: 't1',
    attempt_id: 'a',
    payment_id: 'p',
    paid_at: '1970-01-01T00:00:01.000+00:00',
    order_amount: new JsonNumber('1.50'),
    order_currency: 'EUR',
    lease_seconds: new JsonNumber('60'),
  };
  const byCheckout = { request, headers: { 'x-client-id': 'chk_1' } };
  const paid = { ...shown, order_status: 'PAID' as const, payment_id: 'p', refused_payments: [{ payment_id: 'q' }] };
  send('RecordPayment', { outcome: 'ok', orders: [paid] }, byCheckout);
  send('StartPayment', { outcome: 'order_already_paid' }, byCheckout);
  send('GetOrder', { outcome: 'no response: ECONNREFUSED' });
  send('ListOrders', { outcome: 'ok', orders: [other, shown] }, { order: undefined });
  send('CreateOrder', { outcome: 'invalid_order' }, { order: undefined });
  recorder.recordSent(call(1), 9, 0);
  const attempt = { checkout: 'chk_1', attemptId: 'a' };
  const payment = { checkout: 'chk_1', paymentId: 'p', paidAtMs: 1_000, amount: '1.50', currency: 'EUR' };
  const seen = {
    number: 1,
    status: 'UN_PAID',
    service_order_id: 1,
    order_token: 't1',
    created_at: '',
    refusedIds: [],
    reversals: [],
  };
  expect(lines).toEqual([
    { call: 1, sentMs: 3, number: 1, request: { kind: 'pay', payment, attempt } },
    {
      call: 1,
      receivedMs: 9,
      outcome: 'ok',
      shown: [{ ...seen, status: 'PAID', paymentId: 'p', refusedIds: ['q'] }],
    },
    { call: 2, sentMs: 3, number: 1, request: { kind: 'start', attempt, leaseMs: 60_000 } },
    { call: 2, receivedMs: 9, outcome: 'order_already_paid', shown: [] },
    { call: 3, sentMs: 3, number: 1, request: { kind: 'read' } },
    { call: 3, receivedMs: 9, outcome: 'no response: ECONNREFUSED', shown: [] },
    { call: 4, sentMs: 3, request: { kind: 'read' } },
    { call: 4, receivedMs: 9, outcome: 'ok', shown: [seen] },
    { call: 5, sentMs: 9, number: 1, request: { kind: 'create' } },
  ]);
});
