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
