import { hash } from 'node:crypto';
import { type AmountHundredths, minorUnitOf } from '@order-gateway/domain/money';
import type { Store } from '../../store/store.ts';
import { type Provider, ProviderError, type ProviderRefund } from '../provider.ts';
import { demoRoutes } from './demo-page.ts';

/** The session of a test payment, which the demo provider stores itself. */
interface OpenRequest {
  readonly sessionId: string;
  readonly endsAt: string;
  readonly amountHundredths: string;
  readonly currency: string;
}

type DemoState = Parameters<Store['changeDemoPayment']>[1];

/** A refund. Only that of a payment that the gateway refused changes the session. */
interface RefundRequest {
  readonly sessionId: string;
  readonly refundId?: string;
  readonly amount: string;
}

const refundOf = (sessionId: string, amount: bigint, refundId = ''): ProviderRefund => ({
  providerRefundId: `demo_${hash('sha256', `${sessionId} ${refundId}`).slice(0, 32)}`,
  status: 'SUCCEEDED',
  amount: amount as AmountHundredths,
});

const amountMax = 999_999_999_999_999n;

/**
 * Creates the provider of test payments. It moves no money, but an attempt goes through the same states as with any
 * other provider. It accepts only test orders.
 */
export function createDemoProvider(store: Store, baseUrl: () => string): Provider {
  const change = async (sessionId: string, from: DemoState, to: DemoState) => {
    const [changed] = await store.changeDemoPayment(sessionId, from, { state: to });
    if (changed !== undefined || (await store.findDemoPayment(sessionId))?.state === to) return;
    throw new ProviderError('refused', `not_${from}`);
  };
  return {
    name: 'demo',
    methods: [{ name: 'demo', decimals: minorUnitOf, range: () => [1n, amountMax] }],
    open: {
      request: ({ attemptId, sessionEndsAt, amountHundredths, currency }): OpenRequest => ({
        sessionId: attemptId,
        endsAt: sessionEndsAt.toISOString(),
        amountHundredths: `${amountHundredths}`,
        currency,
      }),
      async send(_account, request) {
        const { sessionId, endsAt, amountHundredths, currency } = request as OpenRequest;
        const sessionEndsAt = new Date(endsAt);
        await store.openDemoPayment({
          sessionId,
          endsAt: sessionEndsAt,
          currency,
          amountHundredths: BigInt(amountHundredths),
        });
        return { sessionId, sessionUrl: `${baseUrl()}/demo/${sessionId}`, sessionEndsAt };
      },
    },
    capture: {
      request: ({ attemptId: sessionId }) => ({ sessionId }),
      send: (_account, request) => change((request as OpenRequest).sessionId, 'authorised', 'captured'),
    },
    close: {
      request: ({ attemptId: sessionId }, { is }) => ({ sessionId, from: is === 'authorised' ? is : 'open' }),
      send: (_account, request) => {
        const { sessionId, from } = request as OpenRequest & { readonly from: 'open' | 'authorised' };
        return change(sessionId, from, 'voided');
      },
    },
    refund: {
      request: ({ attemptId }, { refundId, amount }) => ({ sessionId: attemptId, refundId, amount: `${amount}` }),
      async send(_account, request) {
        const { sessionId, refundId, amount } = request as RefundRequest;
        if (refundId === undefined) await change(sessionId, 'captured', 'refunded');
        return refundOf(sessionId, BigInt(amount), refundId);
      },
    },
    async reversals(_account, { attemptId }) {
      const payment = await store.findDemoPayment(attemptId);
      if (payment?.state !== 'refunded') return { refunds: [], disputes: [] };
      return { refunds: [refundOf(attemptId, payment.amountHundredths)], disputes: [] };
    },
    async look(_account, sessionId) {
      const payment = await store.findDemoPayment(sessionId);
      if (payment === undefined) return { is: 'gone', reason: 'not_opened' };
      const { state, authorisedAt, endsAt, amountHundredths, currency } = payment;
      const isAuthorised = authorisedAt !== null && authorisedAt.getTime() <= Date.now();
      if (state === 'open' && authorisedAt === null && endsAt.getTime() <= Date.now())
        return { is: 'gone', reason: 'expired' };
      if (state === 'open' || (state === 'authorised' && !isAuthorised)) return { is: 'open' };
      if (state === 'refunded') return { is: state };
      if (state !== 'authorised' && state !== 'captured') return { is: 'gone', reason: state };
      return {
        is: state,
        paymentId: `demo_${sessionId}`,
        paidAt: authorisedAt ?? new Date(),
        amount: amountHundredths as AmountHundredths,
        currency,
      };
    },
    routes: (app, wake) => demoRoutes(app, { store, baseUrl }, wake),
  };
}
