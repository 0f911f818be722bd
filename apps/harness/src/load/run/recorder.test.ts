import { expect, test } from 'vitest';
import type { LoadCall } from '../calls/call-maker.ts';
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

test('an acknowledgement that the journal did not take is not counted, and the failure is reported', () => {
  let written = 0;
  let isFull = true;
  const failures: unknown[] = [];
  const write = (entries: readonly unknown[]) => {
    if (isFull) throw new Error('the disk is full');
    written += entries.length;
  };
  const onFailure = (error: unknown) => failures.push(error);
  const recorder = createRecorder({ plannedSeconds: 1, journal: { write }, onFailure });
  const send = (number: number) => {
    recorder.recordSent(0, 0);
    recorder.recordReply(call(number), acknowledged(number), 5, 5);
  };
  send(1);
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
  for (let sent = 0; sent < 5; sent += 1) recorder.recordSent(2_000, 1);
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
  recorder.recordSent(0, 0);
  recorder.recordReply({ ...call(1), order: undefined, expected: ['invalid_order'] }, acknowledged(1), 1, 1);
  recorder.end();
  expect(recorder).toMatchObject({ errors: 1, right: 0 });
});

test('each second has its own percentiles', () => {
  const recorder = createRecorder({ plannedSeconds: 3 });
  for (const [second, ms] of [10, 30, 20].entries()) {
    for (const number of [1, 2]) {
      recorder.recordSent(second * 1_000, 0);
      recorder.recordReply(call(number), acknowledged(number), second * 1_000 + ms, ms);
    }
    recorder.end();
  }
  const seconds = recorder.seconds();
  expect(seconds).toMatchObject([0, 1, 2].map((second) => ({ second, sent: 2, done: 2 })));
  expect(seconds.map(({ max_ms }) => Math.round(max_ms ?? 0))).toEqual([10, 30, 20]);
  expect(recorder.byProtocol.get('json')?.percentile(50)).toBeCloseTo(20, 1);
});

test('responses after the planned end belong to its last second, so that none reads 0 sent, 0 done', () => {
  const recorder = createRecorder({ plannedSeconds: 2 });
  for (const scheduledMs of [0, 500, 1_000, 1_999]) {
    recorder.recordSent(scheduledMs, 0);
    recorder.recordReply(call(1), acknowledged(1), scheduledMs + 300, 300);
    recorder.end();
  }
  expect(recorder.seconds()).toMatchObject([
    { second: 0, sent: 2, done: 2 },
    { second: 1, sent: 2, done: 2 },
  ]);
});

test('a second without any call is one in which nothing was sent and done', () => {
  const recorder = createRecorder({ plannedSeconds: 4 });
  for (const atMs of [0, 3_000]) recorder.recordSent(atMs, 0);
  expect(recorder.seconds().map(({ sent }) => sent)).toEqual([1, 0, 0, 1]);
});

test('a rejected connection is not a quick response, and a call that timed out is a slow one', () => {
  const recorder = createRecorder({ plannedSeconds: 1 });
  for (const [number, outcome] of ['created', 'no response: ECONNREFUSED', 'no response: timeout'].entries()) {
    recorder.recordSent(0, 0);
    recorder.recordReply(call(number), { outcome }, 5, number === 2 ? 10_000 : 5);
  }
  recorder.end();
  expect(recorder).toMatchObject({ sent: 3, done: 1, right: 1, errors: 2 });
  expect(recorder.latencies.count).toBe(2);
  expect(recorder.latencies.percentile(99)).toBeGreaterThanOrEqual(10_000);
  expect(recorder.seconds()).toMatchObject([{ done: 1, wrong: 2 }]);
});

test('the journal gets every status that a response shows, those of errors and of lists too', () => {
  const entries: unknown[] = [];
  const journal = { write: (some: readonly unknown[]) => void entries.push(...some) };
  const numberOf = (orderId: string) => (orderId.startsWith('load-1-') ? Number(orderId.slice(7)) : undefined);
  const recorder = createRecorder({ plannedSeconds: 1, journal, numberOf });
  const expected = ['ok', 'order_already_paid'];
  const about = (operation: LoadCall['operation']) => ({ ...call(1), operation, expected });
  const [shown] = acknowledged(1).orders;
  const [other] = acknowledged(7, { order_id: 'another', order_status: 'PAID' }).orders;
  if (shown === undefined || other === undefined) throw new Error('there is no order');
  const reply = (operation: LoadCall['operation'], outcome: string, orders: (typeof shown)[] = []) => {
    recorder.recordSent(0, 0);
    recorder.recordReply(about(operation), { outcome, ...(outcome === 'ok' && { orders }) }, 9, 5);
  };
  reply('RecordPayment', 'ok', [{ ...shown, order_status: 'PAID', payment_id: 'p' } as never]);
  reply('CancelOrder', 'order_already_paid');
  reply('GetOrder', 'no response: ECONNREFUSED');
  const { order: _order, ...list } = about('ListOrders');
  recorder.recordSent(0, 0);
  recorder.recordReply({ ...list, order: undefined }, { outcome: 'ok', orders: [other, shown] }, 9, 5);
  recorder.end();
  expect(entries).toEqual([
    { number: 1, status: 'PAID', paymentId: 'p', scheduledMs: 4, receivedMs: 9 },
    { number: 1, status: 'PAID', scheduledMs: 4, receivedMs: 9 },
    { number: 1, status: 'UN_PAID', paymentId: undefined, scheduledMs: 4, receivedMs: 9 },
  ]);
});
