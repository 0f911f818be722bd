import { expect, test } from 'vitest';
import type { Call, History, Request, Response, StoredOrder } from './model.ts';
import { describeUnexplained } from './report.ts';

function call(second: number, request: Request, response: Response): Call {
  const [sentAt, receivedAt] = [1_000 * second, 1_000 * second + 250];
  return { request, sentAt, receivedAt, during: { fromMs: sentAt, toMs: receivedAt }, response };
}

const payment = { checkout: '2', paymentId: 'p-1', paidAtMs: 1_500, amount: '10.00', currency: 'EUR' };
const stored: StoredOrder = {
  identity: '7 token',
  merchant: '1',
  content: 'order',
  amount: '10.00',
  currency: 'EUR',
  createdAtMs: 1_000,
  expiresAtMs: null,
  status: 'PAID',
  payment,
  lease: null,
  refused: [],
  reversals: [],
  events: [{ type: 'order.paid', atMs: 2_100 }],
};

test('the report shows the calls that contradict each other, and how many of them a serial order explains', () => {
  const history: History = {
    calls: [
      call(1, { kind: 'create', content: 'order' }, { outcome: 'created', shown: { status: 'UN_PAID' } }),
      call(2, { kind: 'pay', payment }, { outcome: 'ok', shown: { status: 'PAID', paymentId: 'p-1' } }),
      call(3, { kind: 'read' }, { outcome: 'ok', shown: { status: 'PAID' } }),
      call(4, { kind: 'read' }, { outcome: 'ok', shown: { status: 'UN_PAID' } }),
      call(5, { kind: 'read' }, { outcome: 'ok', shown: { status: 'PAID' } }),
    ],
    stored,
  };
  expect(describeUnexplained(history)).toMatchInlineSnapshot(`
    "call  sent  received  request                              response
    1     0     -         create order                         not needed, or none
    2     1000  -         pay 2/p-1 10.00 EUR at 00:00:01.500  not needed, or none
    3     2000  2250      read                                 ok PAID
    4     3000  3250      read                                 ok UN_PAID
    stored: PAID; paid by 2/p-1; events: order.paid at 00:00:02.100
    explained: call 1 (create), call 2 (pay), call 3 (read), which leaves the order PAID by 2/p-1
    contradiction: call 4 had to be next"
  `);
});

test('the report shows when refunds were made, and that no call explains what is stored', () => {
  const refund = { checkout: '2', paymentId: 'p-1', providerId: 're', amount: '4.00', reason: null } as const;
  const report = { kind: 'record refund', ...refund, refundId: 'r', reason: undefined } as const;
  const history: History = {
    calls: [
      call(1, { kind: 'create', content: 'order' }, { outcome: 'created' }),
      call(2, { kind: 'pay', payment }, { outcome: 'ok' }),
      call(3, { kind: 'refund', refundId: 'r', amount: '4.00' }, { outcome: 'created' }),
      call(4, { kind: 'fail refund', refundId: 'other' }, { outcome: 'not_pending' }),
      call(5, { ...report, status: 'SUCCEEDED', refundedAtMs: 4_000 }, { outcome: 'ok' }),
      call(6, { ...report, status: 'FAILED', reason: 'closed_account' }, { outcome: 'ok' }),
    ],
    stored: {
      ...stored,
      reversals: [
        {
          kind: 'refund',
          reporter: '1',
          id: 'r',
          currency: 'EUR',
          ...refund,
          reason: 'closed_account',
          refundedAtMs: 5_100,
          statuses: [
            { status: 'PENDING', atMs: 3_100 },
            { status: 'SUCCEEDED', atMs: 5_100 },
            { status: 'FAILED', atMs: 6_100 },
          ],
        },
      ],
      events: [...stored.events, { type: 'order.refunded', atMs: 5_100 }, { type: 'order.refund_failed', atMs: 6_100 }],
    },
  };
  expect(describeUnexplained(history)).toMatchInlineSnapshot(`
    "call  sent  received  request                                                              response
    1     0     -         create order                                                         not needed, or none
    2     1000  -         pay 2/p-1 10.00 EUR at 00:00:01.500                                  not needed, or none
    3     2000  -         refund r 4.00                                                        not needed, or none
    4     3000  -         fail refund other                                                    not needed, or none
    5     4000  -         record refund r re of 2/p-1 4.00 SUCCEEDED refunded at 00:00:04.000  not needed, or none
    6     5000  -         record refund r re of 2/p-1 4.00 FAILED closed_account               not needed, or none
    stored: PAID; paid by 2/p-1; refund r of p-1: 4.00 EUR FAILED closed_account refunded at 00:00:05.100; events: order.paid at 00:00:02.100, order.refunded at 00:00:05.100, order.refund_failed at 00:00:06.100
    explained: call 1 (create), call 2 (pay), call 3 (refund), call 5 (record refund), call 6 (record refund), which leaves the order PAID by 2/p-1, refund r of p-1: 4.00 EUR FAILED closed_account
    this is not what is stored"
  `);
});

test('the report shows refused payments and disputes, and sorts the calls', () => {
  const refused = { ...payment, amount: '9.00', code: 'payment_mismatch', refundedAtMs: null } as const;
  const dispute = { checkout: '2', paymentId: 'p-1', disputeId: 'd', amount: '9.00', currency: 'EUR' };
  const history: History = {
    calls: [
      call(3, { kind: 'record dispute', ...dispute, status: 'OPEN' }, { outcome: 'replayed' }),
      call(2, { kind: 'pay', payment: { ...payment, amount: '9.00' } }, { outcome: 'payment_mismatch' }),
      call(1, { kind: 'create', content: 'order' }, { outcome: 'created' }),
    ],
    stored: {
      ...stored,
      status: 'UN_PAID',
      payment: null,
      refused: [refused],
      events: [{ type: 'order.payment_refused', atMs: 2_100 }],
    },
  };
  expect(describeUnexplained(history)).toMatchInlineSnapshot(`
    "call  sent  received  request                                  response
    1     0     -         create order                             not needed, or none
    2     1000  -         pay 2/p-1 9.00 EUR at 00:00:01.500       not needed, or none
    3     2000  2250      record dispute d of 2/p-1 9.00 EUR OPEN  replayed
    stored: UN_PAID; refused 2/p-1 (payment_mismatch); events: order.payment_refused at 00:00:02.100
    explained: call 1 (create), call 2 (pay), which leaves the order UN_PAID, refused 2/p-1
    contradiction: call 3 had to be next"
  `);
});

test('the report shows an order that is not stored', () => {
  const calls = [call(1, { kind: 'create', content: 'order' }, { outcome: 'not_found' })];
  expect(describeUnexplained({ calls, stored: null })).toMatchInlineSnapshot(`
    "call  sent  received  request       response
    1     0     250       create order  not_found
    stored: nothing
    explained: nothing, which leaves the order uncreated
    contradiction: call 1 had to be next"
  `);
});
