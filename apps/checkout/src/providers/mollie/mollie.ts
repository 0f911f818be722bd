import { type AmountHundredths, formatAmount, minorUnitOf, parseAmount } from '@order-gateway/domain/money';
import type { SeenDispute } from '../../gateway/gateway.ts';
import type { Attempt } from '../../store/store.ts';
import {
  type Account,
  type Fetch,
  type Method,
  type Provider,
  ProviderError,
  type ProviderRefund,
  type Seen,
} from '../provider.ts';

// The API is described at docs.mollie.com/reference. Compared with it in November 2026, but never with the real Mollie.

const apiUrl = 'https://api.mollie.com/v2';

const timeoutMs = 20_000;

const pageLength = 250;

/**
 * Statuses after which the same request can succeed: once the key was replaced or got a right, or Mollie is less busy.
 */
const waitingStatuses = [401, 403, 409, 429];

/** The currencies that Mollie accepts for cards. */
const cardCurrencies = new Set(
  `AED AUD BGN BRL CAD CHF CZK DKK EUR GBP HKD HUF ILS ISK JPY MXN MYR NOK NZD PHP PLN RON SEK SGD THB TWD USD
  ZAR`.split(/\s+/),
);

/** Larger amounts depend on the account. If Mollie rejects one, the attempt ends. */
const cardMax = 99_999_999n;

const onlyEuros = (currency: string) => (currency === 'EUR' ? 2 : undefined);

/** The methods, with Mollie's own names. Only the first can be authorised before it is captured. */
const methods = [
  {
    name: 'card',
    id: 'creditcard',
    decimals: (currency) => (cardCurrencies.has(currency) ? minorUnitOf(currency) : undefined),
    range: () => [1n, cardMax],
  },
  { name: 'iDEAL', id: 'ideal', decimals: onlyEuros, range: () => [1n, 5_000_000n] },
  { name: 'Bancontact', id: 'bancontact', decimals: onlyEuros, range: () => [2n, 5_000_000n] },
] as const satisfies readonly (Method & { readonly id: string })[];

/** The locales of Mollie's page, the first one of each language without a region. Without one, Mollie chooses. */
const locales = `en_US en_GB nl_NL nl_BE de_DE de_AT de_CH fr_FR fr_BE es_ES ca_ES pt_PT it_IT nb_NO sv_SE fi_FI da_DK
  is_IS hu_HU pl_PL lv_LV lt_LT`.split(/\s+/);

interface Amount {
  readonly currency: string;
  readonly value: string;
}

interface Payment {
  readonly id: string;
  readonly status: 'open' | 'pending' | 'authorized' | 'paid' | 'canceled' | 'expired' | 'failed';
  readonly amount: Amount;
  readonly createdAt: string;
  readonly authorizedAt?: string;
  readonly paidAt?: string;
  readonly expiresAt?: string;
  readonly captureBefore?: string;
  readonly amountCaptured?: Amount;
  /** The sum of the refunds that succeeded. */
  readonly amountRefunded?: Amount;
  readonly metadata?: { readonly attempt_id?: string } | null;
  readonly _links: { readonly checkout?: { readonly href: string } };
  /** Absent in a list. */
  readonly _embedded?: {
    readonly captures?: readonly Part[];
    readonly refunds?: readonly Part[];
  };
}

/** A capture or a refund. A capture can lack the amount, and then takes all of the money. */
interface Part {
  readonly status: string;
  readonly amount?: Amount | null;
}

interface Refund extends Part {
  readonly id: string;
  readonly paymentId: string;
  /** `queued`, `pending`, `processing`, `refunded`, `failed` or `canceled`. */
  readonly status: string;
  readonly amount: Amount;
  readonly createdAt: string;
  readonly metadata?: unknown;
}

interface Chargeback {
  readonly id: string;
  readonly paymentId: string;
  readonly amount: Amount;
  readonly createdAt: string;
  readonly reversedAt?: string | null;
  readonly reason?: { readonly code: string } | null;
}

/**
 * Creates the provider Mollie, which accepts cards, iDEAL and Bancontact on Mollie's own page. Cards are authorised
 * first. Mollie's webhooks are not signed, and its open payments can't be closed unless it says so.
 */
export function createMollieProvider(send: Fetch): Provider {
  const call = createCall(send);
  return {
    name: 'mollie',
    methods,
    keepsSessions: true,
    secretNames: ['key'],
    async identify(secrets) {
      const [, mode] = /^(live|test)_\w+$/.exec(secrets.key ?? '') ?? [];
      if (mode === undefined) throw new ProviderError('refused', 'not_a_mollie_key');
      const profile = Object(await call({ secrets }, 'GET', '/profiles/me'));
      const active = Object(await call({ secrets }, 'GET', '/methods'))._embedded.methods;
      const offered = methods.filter(({ id }) => active.some((method: { id: string }) => method.id === id));
      const settings = { methods: offered.map(({ name }) => name).join(' ') };
      return { account: profile.id, mode: mode as Account['mode'], settings };
    },
    ...mollieCalls(call),
    ...mollieReads(call),
    /** Anyone can send an id, so it is only a hint to look up a payment of this account. */
    verify: (_account, _headers, body) => {
      const id = new URLSearchParams(body).get('id');
      return id !== null && /^tr_\w{1,64}$/.test(id) ? [id] : undefined;
    },
  };
}

/** Sends a request to Mollie. Rejects with a {@link ProviderError}. */
type MollieCall = ReturnType<typeof createCall>;

function createCall(send: Fetch) {
  return async (
    account: Pick<Account, 'secrets'> | undefined,
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    { body, key }: { readonly body?: object; readonly key?: string } = {},
  ) => {
    const response = await send(`${apiUrl}${path}`, {
      method,
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        authorization: `Bearer ${account?.secrets.key ?? ''}`,
        ...(key !== undefined && { 'idempotency-key': key }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    }).catch(() => {
      throw new ProviderError('unanswered', 'no_response');
    });
    const { status } = response;
    const result: unknown = await response.json().catch(() => {
      // Refunds that were not read would be made again. A response to a change can have no body.
      if (response.ok && method === 'GET') throw new ProviderError('unanswered', 'no_response');
      return {};
    });
    if (response.ok) return result;
    const code = `${status}_${Object(result).field ?? Object(result).title ?? 'error'}`;
    // Mollie stores no error under a key, so the same request is sent again.
    throw new ProviderError(status >= 500 || waitingStatuses.includes(status) ? 'unanswered' : 'refused', code);
  };
}

/** Returns the calls that change something at Mollie. */
function mollieCalls(call: MollieCall): Pick<Provider, 'open' | 'capture' | 'close' | 'refund'> {
  const post = (account: Account | undefined, request: object, key: string) => {
    const { path, body } = request as { readonly path: string; readonly body?: object };
    return call(account, body === undefined ? 'DELETE' : 'POST', path, { ...(body && { body }), key });
  };
  return {
    open: {
      request: (attempt, { backUrl }) => {
        const { attemptId, orderId, serviceOrderId, connectionId } = attempt;
        const method = methods.find(({ name }) => name === attempt.method)?.id;
        const locale = localeFor(attempt.locale);
        return {
          amount: amountIn(attempt.amountHundredths, attempt.currency),
          description: orderId,
          redirectUrl: backUrl,
          cancelUrl: `${backUrl}?left=1`,
          // Mollie rejects addresses that it can't reach.
          ...(backUrl.startsWith('https:') && { webhookUrl: new URL(`/hooks/${connectionId}`, backUrl).href }),
          method,
          ...(method === 'creditcard' && { captureMode: 'manual' }),
          ...(locale && { locale }),
          metadata: { order_id: orderId, service_order_id: `${serviceOrderId}`, attempt_id: attemptId },
        };
      },
      async send(account, request, key) {
        const payment = (await call(account, 'POST', '/payments', { body: request, key })) as Payment;
        const { id: sessionId, expiresAt, _links: links } = payment;
        if (expiresAt === undefined) throw new ProviderError('refused', 'no_expiry');
        return { sessionId, sessionUrl: links.checkout?.href ?? '', sessionEndsAt: new Date(expiresAt) };
      },
    },
    capture: {
      request: ({ paymentId }) => ({ path: `/payments/${paymentId}/captures`, body: {} }),
      send: post,
    },
    close: {
      request: ({ sessionId }, { is }) =>
        is === 'authorised'
          ? { path: `/payments/${sessionId}/release-authorization`, body: {} }
          : { path: `/payments/${sessionId}` },
      send: post,
    },
    refund: {
      request: ({ paymentId, orderId, serviceOrderId, attemptId }, { refundId, amount, currency }) => ({
        path: `/payments/${paymentId}/refunds`,
        body: {
          amount: amountIn(amount, currency),
          description: orderId,
          // The metadata have at most 1 KB, which two of the merchant's own identifiers can exceed.
          metadata: {
            service_order_id: `${serviceOrderId}`,
            attempt_id: attemptId,
            ...(refundId !== undefined && { refund_id: refundId }),
          },
        },
      }),
      send: async (account, request, key) => seenRefund((await post(account, request, key)) as Refund),
    },
  };
}

/** Returns the calls that read. */
function mollieReads(call: MollieCall): Pick<Provider, 'reversals' | 'reversed' | 'look' | 'recent' | 'history'> {
  /** Lists what changed since a time: what was created then, and what else is on the same pages, newest first. */
  async function* changedSince<Item extends Payment | Refund | Chargeback>(
    account: Account,
    list: 'payments' | 'refunds' | 'chargebacks',
    since: Date,
  ): AsyncGenerator<Item> {
    let from = '';
    for (;;) {
      const page = Object(await call(account, 'GET', `/${list}?limit=${pageLength}${from}`));
      const items: readonly Item[] = page._embedded[list];
      for (const item of items) if (changedAt(item) >= since.getTime()) yield item;
      const next = page._links?.next?.href;
      if (!next || Date.parse(items.at(-1)?.createdAt ?? '') < since.getTime()) return;
      from = `&from=${new URL(next).searchParams.get('from')}`;
    }
  }

  return {
    async reversals(account, { paymentId }) {
      const path = `/payments/${paymentId}?embed=refunds,chargebacks`;
      const { refunds = [], chargebacks = [] } = Object(Object(await call(account, 'GET', path))._embedded);
      return {
        refunds: refunds.map(seenRefund),
        disputes: chargebacks.map(seenDispute),
      };
    },
    async *reversed(account, since) {
      for (const list of ['refunds', 'chargebacks'] as const)
        for await (const { paymentId } of changedSince<Refund | Chargeback>(account, list, since)) yield paymentId;
    },
    look: async (account, sessionId) =>
      seenOf((await call(account, 'GET', `/payments/${sessionId}?embed=captures,refunds`)) as Payment),
    async *recent(account, since) {
      for await (const { id } of changedSince<Payment>(account, 'payments', since)) yield id;
    },
    async *history(account, since) {
      for await (const payment of changedSince<Payment>(account, 'payments', since)) {
        const attemptId = payment.metadata?.attempt_id;
        if (attemptId !== undefined) yield { attemptId, seen: seenOf(payment) };
      }
    },
  };
}

function changedAt(item: Payment | Refund | Chargeback): number {
  return Date.parse(('reversedAt' in item && item.reversedAt) || item.createdAt);
}

const isAlive = ({ status }: Part) => status !== 'failed' && status !== 'canceled';

/** Returns the sum of the refunds that did not fail. */
const sumOf = (parts: readonly Part[]) =>
  parts
    .filter(isAlive)
    .reduce((sum, { amount }) => sum + (amount ? hundredthsOf(amount.value) : 0n), 0n) as AmountHundredths;

function seenOf(payment: Payment): Seen {
  const { id: paymentId, status, amount, amountCaptured, amountRefunded, captureBefore, _embedded } = payment;
  const { captures = [], refunds = [] } = _embedded ?? {};
  const seen = {
    paymentId,
    paidAt: new Date(payment.authorizedAt ?? payment.paidAt ?? payment.createdAt),
    ...seenAmount(amount),
  };
  switch (status) {
    case 'authorized':
      // Captures are asynchronous: the money is on its way.
      if (captures.some(isAlive)) return { is: 'open' };
      return {
        is: 'authorised',
        ...seen,
        hasCaptureFailed: captures.length > 0,
        ...(captureBefore && { captureBefore: new Date(captureBefore) }),
      };
    case 'paid': {
      // Most methods need no capture. The merchant can capture only a part in Mollie's dashboard.
      const taken = hundredthsOfSum(amountCaptured) || seen.amount;
      const returned = [sumOf(refunds), hundredthsOfSum(amountRefunded)];
      return returned.some((sum) => sum >= taken) ? { is: 'refunded' } : { is: 'captured', ...seen, amount: taken };
    }
    case 'failed':
    case 'canceled':
    case 'expired':
      return { is: 'gone', reason: status === 'failed' ? 'declined' : status };
    default:
      // The customer can still pay, as with a status that Mollie may add.
      return { is: 'open' };
  }
}

function seenRefund(refund: Refund): ProviderRefund {
  const { id, status, amount, createdAt, metadata } = refund;
  const hasFailed = !isAlive(refund);
  return {
    providerRefundId: id,
    status: hasFailed ? 'FAILED' : status === 'refunded' ? 'SUCCEEDED' : 'PENDING',
    amount: hundredthsOf(amount.value),
    metadata,
    ...(hasFailed && { reason: status }),
    ...(status === 'refunded' && { refundedAt: new Date(createdAt) }),
  };
}

/** A chargeback takes the money immediately. If the bank reverses it, the merchant has the money again. */
function seenDispute({ id, amount, reversedAt, reason }: Chargeback): SeenDispute {
  return {
    disputeId: id,
    status: reversedAt ? 'WON' : 'LOST',
    ...seenAmount(amount),
    reason: reason?.code ?? '',
  };
}

function amountIn(amount: bigint, currency: string): Amount {
  const text = formatAmount(amount as AmountHundredths);
  return { currency, value: minorUnitOf(currency) === 0 ? text.slice(0, text.indexOf('.')) : text };
}

const seenAmount = ({ currency, value }: Amount) => ({ amount: hundredthsOf(value), currency });

function hundredthsOf(text: string): AmountHundredths {
  const amount = parseAmount(text);
  if (!amount.ok) throw new ProviderError('unanswered', 'invalid_amount');
  return amount.value;
}

/** Returns the hundredths of a sum, which can be zero, unlike an amount. */
const hundredthsOfSum = (sum: Amount | undefined) =>
  sum === undefined || Number(sum.value) === 0 ? (0n as AmountHundredths) : hundredthsOf(sum.value);

function localeFor(locale: Attempt['locale']): string | undefined {
  const wanted = locale.replace('-', '_');
  return (
    locales.find((known) => known === wanted) ?? locales.find((known) => known.startsWith(`${wanted.slice(0, 2)}_`))
  );
}
