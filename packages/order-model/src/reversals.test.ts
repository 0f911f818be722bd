import { expect, test } from 'vitest';
import {
  isOwedUntilReturned,
  type ReversalRequest,
  type Reversible,
  reversalEventsOf,
  reversalText,
  reversed,
} from './reversals.ts';

// Tests what each request about a refund or dispute does, in the order of the lines. `stored` is what the order has
// after all of them.

const payment = { checkout: '2', paymentId: 'p' };
const refused = { checkout: '2', paymentId: 'q', currency: 'EUR' };
const paid: Reversible = {
  merchant: '1',
  amount: '10.00',
  currency: 'EUR',
  payment,
  refused: [refused],
  reversals: [],
};

const refund = (refundId: string, amount?: string): ReversalRequest => ({ kind: 'refund', refundId, amount });
type RefundReport = Extract<ReversalRequest, { kind: 'record refund' }>;
type DisputeReport = Extract<ReversalRequest, { kind: 'record dispute' }>;
const report = (status: RefundReport['status'], changes: Partial<RefundReport> = {}): ReversalRequest => {
  const key = { ...payment, refundId: 'r', providerId: 're' };
  return { kind: 'record refund', ...key, amount: '4.00', status, ...changes };
};
const atProvider = { refundId: null, providerId: 'own' };
const dispute = (status: DisputeReport['status'], changes: Partial<DisputeReport> = {}): ReversalRequest => {
  return { kind: 'record dispute', ...payment, disputeId: 'd', amount: '4.00', currency: 'EUR', status, ...changes };
};

type Step = readonly [ReversalRequest, outcome: string];

test.each<[string, Partial<Reversible>, Step[], stored: string[], events?: string[]]>([
  [
    'a refund is made once per id and amount, and refunds never exceed the payment',
    {},
    [
      [refund('r', '4.00'), 'created'],
      [refund('r', '4.00'), 'replayed'],
      [refund('r'), 'replayed'],
      [refund('r', '4.01'), 'refund_id_conflict'],
      [refund('s', '6.01'), 'refund_exceeds_payment'],
      [refund('s'), 'created'],
      [refund('t'), 'refund_exceeds_payment'],
    ],
    ['refund r of p: 4.00 EUR PENDING', 'refund s of p: 6.00 EUR PENDING'],
    [],
  ],
  ['an unpaid order has nothing to refund', { payment: null }, [[refund('r'), 'order_not_paid']], []],
  [
    'a payment is refunded only by a checkout system that makes refunds',
    {},
    [[{ ...refund('r'), refunders: ['3'] } as ReversalRequest, 'refunds_not_supported']],
    [],
  ],
  [
    'the merchant refunds a payment that it recorded itself, immediately',
    { payment: { checkout: '1', paymentId: 'p' } },
    [[{ ...refund('r'), refunders: [] } as ReversalRequest, 'created']],
    ['refund r of p: 10.00 EUR SUCCEEDED'],
    ['order.refunded'],
  ],
  [
    'the note decides how the refund of a simulated payment ends',
    { payment: { checkout: 'simulated', paymentId: 'p' } },
    [
      [{ ...refund('r', '4.00'), note: 'fail' } as ReversalRequest, 'created'],
      [{ ...refund('s', '4.00'), note: 'fail later' } as ReversalRequest, 'created'],
      [{ ...refund('t'), note: 'any other' } as ReversalRequest, 'created'],
    ],
    [
      'refund r of p: 4.00 EUR FAILED simulated',
      'refund s of p: 4.00 EUR FAILED simulated',
      'refund t of p: 10.00 EUR SUCCEEDED',
    ],
    ['order.refund_failed', 'order.refund_failed', 'order.refunded', 'order.refunded'],
  ],
  [
    'a merchant can request 100 refunds of an order, and the provider can make more',
    {},
    [
      ...Array.from({ length: 100 }, (_, index): Step => [refund(`r${index}`, '0.01'), 'created']),
      [refund('s', '0.01'), 'refund_exceeds_payment'],
      [refund('r0', '0.01'), 'replayed'],
      [report('SUCCEEDED', { ...atProvider, amount: '0.01' }), 'ok'],
    ],
    [
      'refund own of p: 0.01 EUR SUCCEEDED',
      ...Array.from({ length: 100 }, (_, index) => `refund r${index} of p: 0.01 EUR PENDING`).sort(),
    ],
    ['order.refunded'],
  ],
  [
    'an operator ends a pending refund that the provider does not have, once',
    {},
    [
      [refund('r', '4.00'), 'created'],
      [{ kind: 'fail refund', refundId: 'r' }, 'ok'],
      [{ kind: 'fail refund', refundId: 'r' }, 'not_pending'],
      [{ kind: 'fail refund', refundId: 'unknown' }, 'not_pending'],
      [refund('s', '10.00'), 'created'],
      [report('PENDING', { refundId: 's', amount: '10.00' }), 'ok'],
      [{ kind: 'fail refund', refundId: 's' }, 'known_to_provider'],
    ],
    ['refund r of p: 4.00 EUR FAILED ended_by_operator', 'refund s of p: 10.00 EUR PENDING'],
    ['order.refund_failed'],
  ],
  [
    'a failed refund frees its amount and never succeeds, and a bank can return a refund that succeeded',
    {},
    [
      [refund('r', '4.00'), 'created'],
      [report('PENDING'), 'ok'],
      [report('PENDING'), 'replayed'],
      [report('SUCCEEDED'), 'ok'],
      [report('FAILED', { reason: 'closed_account' }), 'ok'],
      [report('FAILED', { reason: 'another' }), 'replayed'],
      [report('SUCCEEDED'), 'replayed'],
      [report('SUCCEEDED', { amount: '3.00' }), 'refund_id_conflict'],
      [refund('s'), 'created'],
    ],
    ['refund r of p: 4.00 EUR FAILED closed_account', 'refund s of p: 10.00 EUR PENDING'],
    ['order.refund_failed', 'order.refunded'],
  ],
  [
    'a refund that the provider knows fails only by the provider’s id',
    {},
    [
      [refund('r', '4.00'), 'created'],
      [report('PENDING'), 'ok'],
      [report('FAILED', { providerId: null }), 'replayed'],
    ],
    ['refund r of p: 4.00 EUR PENDING'],
    [],
  ],
  [
    'a report gives no refund the provider’s id of another one',
    {},
    [
      [refund('r', '4.00'), 'created'],
      [refund('s', '4.00'), 'created'],
      [report('SUCCEEDED'), 'ok'],
      [report('SUCCEEDED', { refundId: 's' }), 'refund_id_conflict'],
      [report('SUCCEEDED', { refundId: null, paymentId: 'q' }), 'refund_id_conflict'],
      [report('SUCCEEDED', { refundId: null }), 'replayed'],
    ],
    ['refund r of p: 4.00 EUR SUCCEEDED', 'refund s of p: 4.00 EUR PENDING'],
    ['order.refunded'],
  ],
  [
    'money that went back although the refund had failed, or a second time, is another refund',
    {},
    [
      [refund('r', '4.00'), 'created'],
      [report('FAILED', { providerId: null }), 'ok'],
      [report('SUCCEEDED'), 'ok'],
      [report('SUCCEEDED', { providerId: 're-2' }), 'ok'],
    ],
    ['refund r of p: 4.00 EUR FAILED', 'refund re of p: 4.00 EUR SUCCEEDED', 'refund re-2 of p: 4.00 EUR SUCCEEDED'],
    ['order.refund_failed', 'order.refunded', 'order.refunded'],
  ],
  [
    'a refund made at the provider is a fact, and the latest pending refunds that no longer fit fail',
    {},
    [
      [refund('r', '4.00'), 'created'],
      [refund('s', '4.00'), 'created'],
      [report('SUCCEEDED', { ...atProvider, amount: '6.00' }), 'ok'],
      [report('SUCCEEDED', { ...atProvider, providerId: 'own-2', amount: '9.00' }), 'ok'],
    ],
    [
      'refund own of p: 6.00 EUR SUCCEEDED',
      'refund own-2 of p: 9.00 EUR SUCCEEDED',
      'refund r of p: 4.00 EUR FAILED exceeds_payment',
      'refund s of p: 4.00 EUR FAILED exceeds_payment',
    ],
    ['order.refund_failed', 'order.refund_failed', 'order.refunded', 'order.refunded'],
  ],
  [
    'a pending refund that the provider has stays',
    {},
    [
      [refund('r', '4.00'), 'created'],
      [report('PENDING'), 'ok'],
      [dispute('LOST', { amount: '10.00' }), 'ok'],
    ],
    ['dispute d of p: 10.00 EUR LOST', 'refund r of p: 4.00 EUR PENDING'],
    ['order.dispute_closed'],
  ],
  [
    'refunds and disputes of a refused payment hold nothing of the order’s payment, and those of an unknown one are not found',
    {},
    [
      [report('SUCCEEDED', { ...atProvider, paymentId: 'q', amount: '10.00' }), 'ok'],
      [dispute('OPEN', { paymentId: 'q' }), 'ok'],
      [report('SUCCEEDED', { ...atProvider, paymentId: 'x' }), 'not_found'],
      [dispute('OPEN', { checkout: '3' }), 'not_found'],
      [refund('r', '10.00'), 'created'],
      [report('FAILED', { paymentId: 'q', providerId: null }), 'refund_id_conflict'],
    ],
    ['dispute d of q: 4.00 EUR OPEN', 'refund own of q: 10.00 EUR SUCCEEDED', 'refund r of p: 10.00 EUR PENDING'],
    ['order.disputed', 'order.refunded'],
  ],
  [
    'a dispute holds its amount while it is open or lost, and a late report changes nothing',
    {},
    [
      [dispute('INQUIRY'), 'ok'],
      [refund('r', '10.00'), 'created'],
      [report('FAILED', { providerId: null, amount: '10.00' }), 'ok'],
      [dispute('OPEN'), 'ok'],
      [refund('s', '6.01'), 'refund_exceeds_payment'],
      [dispute('WON'), 'ok'],
      [dispute('OPEN'), 'replayed'],
      [dispute('LOST'), 'ok'],
      [refund('s', '6.01'), 'refund_exceeds_payment'],
      [dispute('WON', { reason: 'fraudulent' }), 'ok'],
      [refund('s', '10.00'), 'created'],
    ],
    ['dispute d of p: 4.00 EUR WON fraudulent', 'refund r of p: 10.00 EUR FAILED', 'refund s of p: 10.00 EUR PENDING'],
    [...['order.dispute_closed', 'order.dispute_closed', 'order.disputed', 'order.disputed', 'order.refund_failed']],
  ],
  [
    'a dispute in another currency holds everything',
    {},
    [
      [dispute('OPEN', { amount: '1.00', currency: 'USD' }), 'ok'],
      [refund('r', '1.00'), 'refund_exceeds_payment'],
    ],
    ['dispute d of p: 1.00 USD OPEN'],
  ],
])('%s', (_, changes, steps, stored, events) => {
  let order: Reversible = { ...paid, ...changes };
  const outcomes = steps.map(([request]) => {
    const { reversals, outcome } = reversed(order, request);
    const hasEffect = outcome === 'created' || outcome === 'ok';
    expect(reversals === order.reversals).toBe(!hasEffect);
    order = { ...order, reversals };
    return outcome;
  });
  expect(outcomes).toEqual(steps.map(([, outcome]) => outcome));
  expect(order.reversals.map(reversalText).sort()).toEqual(stored);
  if (events !== undefined) expect(reversalEventsOf(order.reversals)).toEqual(events);
});

test.each([
  ['EUR', null],
  ['USD', 5],
])('a lost dispute of 1.00 %s returns a refused payment of 10.00 EUR at %s', (currency, refundedAtMs) => {
  const lost = { ...payment, kind: 'dispute', reporter: '2', id: 'd', amount: '1.00', currency } as const;
  const others = {
    providerId: null,
    reason: null,
    refundedAtMs: null,
    statuses: [{ status: 'LOST', atMs: 5 }],
  } as const;
  const isOwed = (refundedAtMs: number | null) =>
    isOwedUntilReturned({ ...payment, amount: '10.00', currency: 'EUR', refundedAtMs }, [{ ...lost, ...others }]);
  expect([null, 5, 6].filter(isOwed)).toEqual([refundedAtMs]);
});
