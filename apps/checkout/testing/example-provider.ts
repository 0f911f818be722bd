import { type AmountHundredths, formatAmount, minorUnitOf, parseAmount } from '@order-gateway/domain/money';
import {
  type Account,
  type Call,
  type Fetch,
  type Provider,
  ProviderError,
  type ProviderRefund,
  type Seen,
} from '../src/providers/provider.ts';

// The example of docs/architecture.md: a provider that authorises first, and has no webhooks and lists. Amounts are
// text.

const apiUrl = 'https://api.provider.example';

/** Creates the example of a provider. */
export function createExampleProvider(send: Fetch): Provider {
  const call = async (account: Pick<Account, 'secrets'> | undefined, path: string, body?: object, key = '') => {
    const authorization = `Bearer ${account?.secrets.key}`;
    const response = await send(`${apiUrl}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization, 'content-type': 'application/json', 'idempotency-key': key },
      ...(body && { body: JSON.stringify(body) }),
    }).catch(() => {
      throw new ProviderError('unanswered', 'no_response');
    });
    if (response.ok) return Object(await response.json());
    // This provider stores no error under a key, so the same request can be sent again.
    throw new ProviderError(response.status >= 500 ? 'unanswered' : 'refused', `${response.status}`);
  };
  const action = (name: string): Call<unknown, unknown> => ({
    request: ({ sessionId }) => ({ path: `/sessions/${sessionId}/${name}` }),
    send: (account, request, key) => call(account, (request as { path: string }).path, {}, key),
  });
  return {
    name: 'example',
    methods: [{ name: 'card', decimals: minorUnitOf, range: () => [1n, 99_999_999n] }],
    secretNames: ['key'],
    async identify(secrets) {
      const { id, mode } = await call({ secrets }, '/account');
      return { account: id, mode };
    },
    open: {
      request: ({ amountHundredths, currency, orderId, attemptId, sessionEndsAt }, { backUrl }) => ({
        amount: formatAmount(amountHundredths as AmountHundredths),
        currency,
        description: orderId,
        attempt_id: attemptId,
        ends_at: sessionEndsAt.toISOString(),
        return_url: backUrl,
      }),
      async send(account, request, key) {
        const { id, url, ends_at } = await call(account, '/sessions', request, key);
        return { sessionId: id, sessionUrl: url, sessionEndsAt: new Date(ends_at) };
      },
    },
    capture: action('capture'),
    close: action('close'),
    refund: {
      request: ({ sessionId, orderId }, { refundId, amount }) => ({
        sessionId,
        amount: formatAmount(amount),
        metadata: { order_id: orderId, refund_id: refundId },
      }),
      async send(account, request, key) {
        const { sessionId, ...refund } = request as { readonly sessionId: string };
        return refundOf(await call(account, `/sessions/${sessionId}/refunds`, refund, key));
      },
    },
    async reversals(account, { sessionId }) {
      const { refunds } = await call(account, `/sessions/${sessionId}/refunds`);
      return { refunds: refunds.map(refundOf), disputes: [] };
    },
    async look(account, sessionId): Promise<Seen> {
      const { state, payment_id: paymentId, paid_at, amount, currency } = await call(account, `/sessions/${sessionId}`);
      if (state === 'open' || state === 'refunded') return { is: state };
      if (state !== 'authorised' && state !== 'captured') return { is: 'gone', reason: state };
      return { is: state, paymentId, paidAt: new Date(paid_at), amount: amountOf(amount), currency };
    },
  };
}

function refundOf({
  id,
  amount,
  ...refund
}: Pick<ProviderRefund, 'status' | 'metadata'> & Record<'id' | 'amount', string>) {
  return { ...refund, providerRefundId: id, amount: amountOf(amount) };
}

function amountOf(text: string): AmountHundredths {
  const amount = parseAmount(text);
  if (!amount.ok) throw new ProviderError('unanswered', 'invalid_amount');
  return amount.value;
}
