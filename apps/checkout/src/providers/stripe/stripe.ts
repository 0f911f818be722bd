import Stripe from 'stripe';
import type { SeenDispute } from '../../gateway/gateway.ts';
import type { Attempt } from '../../store/store.ts';
import { type Account, type Fetch, type Provider, ProviderError, type ProviderRefund, type Seen } from '../provider.ts';
import { fromStripeUnits, stripeDecimals, stripeRange, stripeUnits } from './currencies.ts';

const timeoutMs = 20_000;

/** The longest page of a list. */
const pageLength = 100;

/** Stripe signs the time of a webhook. */
const toleranceSeconds = 300;

/** The events after which an attempt may have changed. */
const eventTypes = [
  'checkout.session.completed',
  'checkout.session.expired',
  'payment_intent.amount_capturable_updated',
  'payment_intent.canceled',
  'payment_intent.succeeded',
  'charge.refunded',
];

/** The events after which the refunds or disputes of a payment may have changed. */
const reversalEventTypes = [
  'charge.refunded',
  'refund.created',
  'refund.updated',
  'refund.failed',
  'charge.dispute.created',
  'charge.dispute.updated',
  'charge.dispute.closed',
];

/** The page's locales that Stripe does not support. For these, Stripe chooses the language by the browser. */
const unknownLocales = ['hi', 'ar'];

type SessionParams = Stripe.Checkout.SessionCreateParams;

/**
 * Creates the provider Stripe, which accepts cards on Stripe's own page. Cards are authorised first and captured under
 * a claim, so that a refused payment is never charged.
 */
export function createStripeProvider(send: Fetch): Provider {
  const clientOf: ClientOf = (account) =>
    new Stripe(account?.secrets.key ?? '', {
      httpClient: Stripe.createFetchHttpClient(send as typeof fetch),
      // `life.ts` repeats every call, after it has read the attempt's status from Stripe.
      maxNetworkRetries: 0,
      timeout: timeoutMs,
      telemetry: false,
    });
  return {
    name: 'stripe',
    methods: [{ name: 'card', decimals: stripeDecimals, range: stripeRange }],
    secretNames: ['key', 'webhookSecret'],
    async identify(secrets) {
      const [, mode] = /^[rs]k_(live|test)_\w+$/.exec(secrets.key ?? '') ?? [];
      if (mode === undefined) throw new ProviderError('refused', 'not_a_stripe_key');
      const { id } = await answered(clientOf({ secrets }).accounts.retrieveCurrent());
      return { account: id, mode: mode as Account['mode'] };
    },
    ...stripeCalls(clientOf),
    ...stripeReads(clientOf),
    verify(account, headers, body) {
      const { webhookSecret } = account.secrets;
      if (!webhookSecret) return undefined;
      try {
        const signature = `${headers['stripe-signature']}`;
        return idsOf(Stripe.webhooks.constructEvent(body, signature, webhookSecret, toleranceSeconds));
      } catch {
        return undefined;
      }
    },
  };
}

/** Returns the client with the key of an account. */
type ClientOf = (account: Pick<Account, 'secrets'> | undefined) => Stripe;

/** Returns the calls that change something at Stripe. */
function stripeCalls(clientOf: ClientOf): Pick<Provider, 'open' | 'capture' | 'close' | 'refund'> {
  return {
    open: {
      request: (attempt, { backUrl }): SessionParams => {
        const { attemptId, orderId, serviceOrderId, amountHundredths, currency, sessionEndsAt, locale } = attempt;
        const metadata = { order_id: orderId, service_order_id: `${serviceOrderId}`, attempt_id: attemptId };
        const [language = ''] = locale.split('-');
        return {
          mode: 'payment',
          allowed_payment_method_types: ['card'],
          line_items: [
            {
              quantity: 1,
              price_data: {
                currency: currency.toLowerCase(),
                unit_amount: stripeUnits(amountHundredths, currency),
                product_data: { name: orderId },
              },
            },
          ],
          payment_intent_data: { capture_method: 'manual', description: orderId, metadata },
          metadata,
          // Nothing that changes the amount or the currency is left to the settings of the account.
          adaptive_pricing: { enabled: false },
          automatic_tax: { enabled: false },
          allow_promotion_codes: false,
          locale: (unknownLocales.includes(language) ? 'auto' : language) as 'auto',
          expires_at: Math.ceil(sessionEndsAt.getTime() / 1_000),
          success_url: backUrl,
          cancel_url: `${backUrl}?left=1`,
        };
      },
      async send(account, request, key, customer) {
        const { sessions } = clientOf(account).checkout;
        const params = request as SessionParams;
        const create = (data: SessionParams['payment_intent_data']) =>
          sessions.create({ ...params, ...(data && { payment_intent_data: data }) }, { idempotencyKey: key });
        const receipt = customer && { ...params.payment_intent_data, receipt_email: customer.customerEmail };
        const session = await answered(
          create(receipt).catch((error: unknown) => {
            // Stripe keeps no key of a request that it rejects as invalid.
            if (receipt && `${Object(error).param}`.includes('receipt_email')) return create(undefined);
            throw error;
          }),
        );
        const { id: sessionId, url: sessionUrl, expires_at: expiresAt } = session;
        return { sessionId, sessionUrl: sessionUrl ?? '', sessionEndsAt: new Date(expiresAt * 1_000) };
      },
    },
    capture: {
      request: ({ paymentId }) => ({ paymentId }),
      send: (account, request, idempotencyKey) =>
        answered(clientOf(account).paymentIntents.capture(paymentIdOf(request), {}, { idempotencyKey })),
    },
    close: {
      request: ({ sessionId, paymentId }, { is }) => (is === 'authorised' ? { paymentId } : { sessionId }),
      send(account, request, idempotencyKey) {
        const stripe = clientOf(account);
        const { sessionId } = request as { readonly sessionId?: string };
        return answered<unknown>(
          sessionId === undefined
            ? stripe.paymentIntents.cancel(paymentIdOf(request), {}, { idempotencyKey })
            : stripe.checkout.sessions.expire(sessionId, {}, { idempotencyKey }),
        );
      },
    },
    refund: {
      request: ({ paymentId, attemptId, orderId }, { refundId, amount, currency }) => ({
        payment_intent: paymentId,
        // Stripe refunds the rest of a payment if no amount is given.
        ...(refundId !== undefined && { amount: stripeUnits(amount, currency) }),
        metadata: { order_id: orderId, attempt_id: attemptId, ...(refundId !== undefined && { refund_id: refundId }) },
      }),
      async send(account, request, idempotencyKey) {
        return seenRefund(await answered(clientOf(account).refunds.create(request, { idempotencyKey })));
      },
    },
  };
}

/** Returns the calls that read. */
function stripeReads(clientOf: ClientOf): Pick<Provider, 'reversals' | 'reversed' | 'look' | 'recent' | 'history'> {
  const pagesSince = (since: Date) => ({ created: { gte: Math.floor(since.getTime() / 1_000) }, limit: pageLength });

  async function* idsInEvents(account: Account, since: Date, types: readonly string[]): AsyncGenerator<string> {
    const events = clientOf(account).events.list({ ...pagesSince(since), types: [...types] });
    for await (const event of listed(events)) yield* idsOf(event);
  }

  return {
    async reversals(account, attempt) {
      const { refunds, disputes } = clientOf(account);
      const ofPayment = { payment_intent: attempt.paymentId ?? '', limit: pageLength };
      const made = await Array.fromAsync(listed(refunds.list(ofPayment)));
      return {
        refunds: made.filter((refund) => !isRelease(refund, attempt)).map(seenRefund),
        disputes: await Array.fromAsync(listed(disputes.list(ofPayment)), seenDispute),
      };
    },
    reversed: (account, since) => idsInEvents(account, since, reversalEventTypes),
    async look(account, sessionId) {
      const expand = ['payment_intent.latest_charge'];
      return seenOf(await answered(clientOf(account).checkout.sessions.retrieve(sessionId, { expand })));
    },
    recent: (account, since) => idsInEvents(account, since, eventTypes),
    async *history(account, since) {
      const expand = ['data.payment_intent.latest_charge'];
      const sessions = clientOf(account).checkout.sessions.list({ ...pagesSince(since), expand });
      for await (const session of listed(sessions)) {
        const attemptId = session.metadata?.attempt_id;
        if (attemptId !== undefined) yield { attemptId, seen: seenOf(session) };
      }
    },
  };
}

const paymentIdOf = (request: object) => `${(request as { readonly paymentId: string }).paymentId}`;

/** The payment intent decides: a complete session with a payment that was not captured counts as unpaid. */
function seenOf({ status, payment_intent: intent }: Stripe.Checkout.Session): Seen {
  // It is absent until the customer confirms the payment.
  if (intent === null || typeof intent === 'string')
    return status === 'expired' ? { is: 'gone', reason: 'expired' } : { is: 'open' };
  const charge = typeof intent.latest_charge === 'string' ? null : intent.latest_charge;
  const currency = intent.currency.toUpperCase();
  const payment = {
    paymentId: intent.id,
    paidAt: new Date((charge?.created ?? intent.created) * 1_000),
    currency,
  };
  if (intent.status === 'requires_capture') {
    const captureBefore = charge?.payment_method_details?.card?.capture_before;
    return {
      is: 'authorised',
      ...payment,
      amount: fromStripeUnits(intent.amount, currency),
      ...(captureBefore && { captureBefore: new Date(captureBefore * 1_000) }),
    };
  }
  if (intent.status === 'succeeded') {
    if (charge?.refunded) return { is: 'refunded' };
    return { is: 'captured', ...payment, amount: fromStripeUnits(intent.amount_received, currency) };
  }
  if (intent.status === 'canceled') return { is: 'gone', reason: intent.cancellation_reason ?? 'canceled' };
  return status === 'expired' && intent.status !== 'processing' ? { is: 'gone', reason: 'expired' } : { is: 'open' };
}

const refundStatuses: Readonly<Record<string, ProviderRefund['status']>> = {
  succeeded: 'SUCCEEDED',
  failed: 'FAILED',
  canceled: 'FAILED',
};

/** Stripe lists the part of an authorisation that was not captured as a refund, for which no money moved. */
function isRelease(refund: Stripe.Refund, { amountHundredths, paidHundredths, currency }: Attempt): boolean {
  const released = paidHundredths === null ? 0n : amountHundredths - paidHundredths;
  return released > 0n && refund.balance_transaction === null && fromStripeUnits(refund.amount, currency) === released;
}

function seenRefund(refund: Stripe.Refund): ProviderRefund {
  const { id, status, amount, currency, created, failure_reason: reason, metadata } = refund;
  return {
    providerRefundId: id,
    // One that requires an action of the customer is pending too.
    status: refundStatuses[status ?? ''] ?? 'PENDING',
    amount: fromStripeUnits(amount, currency.toUpperCase()),
    reason,
    metadata,
    ...(status === 'succeeded' && { refundedAt: new Date(created * 1_000) }),
  };
}

const disputeStatuses: Readonly<Record<string, SeenDispute['status']>> = {
  needs_response: 'OPEN',
  under_review: 'OPEN',
  won: 'WON',
  lost: 'LOST',
  // An inquiry that was closed, or a dispute that was prevented, left the money with the merchant.
  warning_closed: 'WON',
  prevented: 'WON',
};

function seenDispute({ id, status, amount, currency, reason }: Stripe.Dispute): SeenDispute {
  return {
    disputeId: id,
    // An inquiry, whose status begins with `warning_`, moves no money.
    status: disputeStatuses[status] ?? 'INQUIRY',
    amount: fromStripeUnits(amount, currency.toUpperCase()),
    currency: currency.toUpperCase(),
    reason,
  };
}

/** Returns what an event is about: an attempt, a session or a payment. */
function idsOf({ data }: Stripe.Event): string[] {
  const { id, metadata, payment_intent: intent } = Object(data.object);
  return [metadata?.attempt_id, id, intent].filter((text) => typeof text === 'string');
}

const errorKinds: Readonly<Record<string, ProviderError['kind']>> = {
  // Requests that Stripe rejects, now and whenever they are repeated.
  StripeInvalidRequestError: 'refused',
  StripeCardError: 'refused',
  // Responses that Stripe stores under the key, or after which the key cannot be used.
  StripeAPIError: 'failed',
  StripeIdempotencyError: 'failed',
};

const answered = <Result>(call: Promise<Result>): Promise<Result> => call.catch(fail);

/** Yields the items of a list. Rejects with a {@link ProviderError}. */
async function* listed<Item>(items: AsyncIterable<Item>): AsyncGenerator<Item> {
  try {
    yield* items;
  } catch (error) {
    fail(error);
  }
}

function fail(error: unknown): never {
  const { type = 'unknown', code, statusCode = 0 } = Object(error);
  const isBusy = statusCode === 409 || statusCode === 429;
  throw new ProviderError((!isBusy && errorKinds[type]) || 'unanswered', code ?? type);
}
