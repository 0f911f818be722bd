import { minorUnitOf } from '@order-gateway/domain/money';

/** How the stand-in responds to the next request of a kind. */
type Misbehaviour = 'effect without response' | '500' | '429' | '401' | 'refused';

interface Payment {
  readonly id: string;
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly amount: { readonly currency: string; readonly value: string };
  readonly method: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly isManual: boolean;
  status: 'open' | 'authorized' | 'paid' | 'canceled' | 'expired' | 'failed';
  authorizedAt?: string;
  paidAt?: string;
  readonly _links: { readonly checkout: { readonly href: string } };
  readonly _embedded: {
    readonly captures: { status: string; readonly amount: Payment['amount'] }[];
    readonly refunds: Refund[];
    readonly chargebacks: { readonly id: string; readonly paymentId: string }[];
  };
}

interface Refund extends Pick<Payment, 'id' | 'amount' | 'createdAt' | 'metadata'> {
  readonly paymentId: string;
  status: string;
}

/** The members of a request that creates a payment. `expiresAt` is not one of them. */
const openMembers = [
  ...['amount', 'description', 'redirectUrl', 'cancelUrl', 'webhookUrl', 'method', 'captureMode', 'locale'],
  'metadata',
];

/** The methods that can be authorised first, and those that an account has here. */
const manualMethods = ['creditcard', 'klarna', 'billie', 'riverty'];
const activeMethods = ['creditcard', 'ideal'];

const sessionMs = 15 * 60_000;

/** The longest page of a list. */
const pageLengthMax = 250;

/**
 * Creates a stand-in of Mollie that keeps its state, checks every request by the rules that Mollie documents, honours
 * idempotency keys, captures asynchronously, and misbehaves on demand. It is ours, so it proves only our own logic.
 */
export function createMollieStandIn({ key = 'live_standIn' } = {}) {
  const payments = new Map<string, Payment>();
  const stored = new Map<string, { readonly request: string; readonly status: number; readonly body: unknown }>();
  const misbehaviours = new Map<string, Misbehaviour[]>();
  const requests: { readonly route: string; readonly key: string | null; readonly body: unknown }[] = [];

  const found = (id: string): Payment => {
    const payment = payments.get(id);
    if (payment === undefined) throw new ApiError(404, 'Not Found');
    return payment;
  };

  const listOf = (name: string, items: readonly { readonly id: string }[], query: URLSearchParams) => {
    const newest = items.toReversed();
    const start = Math.max(
      newest.findIndex(({ id }) => id === query.get('from')),
      0,
    );
    const end = start + Math.min(Number(query.get('limit') ?? 50), pageLengthMax);
    const href = `https://api.mollie.com/v2/${name}?from=${newest[end]?.id}`;
    return {
      _embedded: { [name]: newest.slice(start, end) },
      _links: { next: end < newest.length ? { href } : null },
    };
  };
  const embedded = <Name extends 'refunds' | 'chargebacks'>(name: Name) =>
    [...payments.values()].flatMap(({ _embedded }) => _embedded[name]);

  const handlers: Readonly<
    Record<string, (id: string, body: Record<string, unknown>, query: URLSearchParams) => object>
  > = {
    'GET /profiles/me': () => ({ resource: 'profile', id: 'pfl_standIn' }),
    'GET /methods': () => ({
      count: activeMethods.length,
      _embedded: { methods: activeMethods.map((id) => ({ id })) },
    }),
    'GET /payments': (_id, _body, query) =>
      listOf(
        'payments',
        Array.from(payments.values(), (payment) => shown(payment)),
        query,
      ),
    'POST /payments'(_id, body) {
      checkOpen(body);
      const id = `tr_standIn${payments.size + 1}`;
      const now = Date.now();
      const payment: Payment = {
        id,
        createdAt: new Date(now).toISOString(),
        expiresAt: new Date(now + sessionMs).toISOString(),
        amount: body.amount as Payment['amount'],
        method: `${body.method}`,
        metadata: body.metadata as Payment['metadata'],
        isManual: body.captureMode === 'manual',
        status: 'open',
        _links: { checkout: { href: `https://checkout.mollie.example/${id}` } },
        _embedded: { captures: [], refunds: [], chargebacks: [] },
      };
      payments.set(id, payment);
      return payment;
    },
    'GET /payments/{id}': (id, _body, query) => shown(found(id), query.get('embed')?.split(',')),
    // Most methods can't be cancelled once the customer has the address.
    'DELETE /payments/{id}'() {
      throw new ApiError(422, 'Unprocessable Entity');
    },
    'POST /payments/{id}/captures'(id, { amount }) {
      const payment = found(id);
      if (payment.status !== 'authorized' || payment._embedded.captures.length > 0) throw new ApiError(422, 'captured');
      payment._embedded.captures.push({ status: 'pending', amount: (amount as Payment['amount']) ?? payment.amount });
      return { resource: 'capture' };
    },
    'POST /payments/{id}/release-authorization'(id) {
      const payment = found(id);
      if (payment.status !== 'authorized') throw new ApiError(422, 'status');
      payment.status = 'canceled';
      return {};
    },
    'POST /payments/{id}/refunds'(id, body) {
      const payment = found(id);
      checkAmount(body.amount);
      checkMetadata(body.metadata);
      const amount = body.amount as Payment['amount'];
      const refunded = payment._embedded.refunds.reduce((sum, refund) => sum + Number(refund.amount.value), 0);
      if (payment.status !== 'paid' || refunded + Number(amount.value) > Number(payment.amount.value))
        throw new ApiError(422, 'amount');
      const refund: Refund = {
        id: `re_${id}_${payment._embedded.refunds.length + 1}`,
        paymentId: id,
        amount,
        status: 'queued',
        createdAt: new Date().toISOString(),
        metadata: body.metadata as Refund['metadata'],
      };
      payment._embedded.refunds.push(refund);
      return refund;
    },
    'GET /refunds': (_id, _body, query) => listOf('refunds', embedded('refunds'), query),
    'GET /chargebacks': (_id, _body, query) => listOf('chargebacks', embedded('chargebacks'), query),
  };

  /** Takes the place of `fetch`. */
  const send = async (url: string, init: RequestInit): Promise<Response> => {
    const { origin, pathname, searchParams } = new URL(url);
    if (origin !== 'https://api.mollie.com') throw new TypeError(`not Mollie: ${origin}`);
    const headers = new Headers(init.headers);
    if (headers.get('authorization') !== `Bearer ${key}`) return answer(401, { title: 'Unauthorized' });
    const [, , resource, id = '', ...rest] = pathname.split('/');
    const isPayment = resource === 'payments' && id !== '';
    const route = `${init.method} /${[resource, ...(isPayment ? ['{id}'] : id ? [id] : []), ...rest].join('/')}`;
    const body = init.body ? JSON.parse(`${init.body}`) : {};
    const idempotencyKey = headers.get('idempotency-key');
    requests.push({ route, key: idempotencyKey, body });
    const mishap = misbehaviours.get(route)?.shift();
    if (mishap === '429') return answer(429, { title: 'Too Many Requests' });
    if (mishap === '401') return answer(401, { title: 'Unauthorized Request' });
    if (mishap === '500') return answer(500, { title: 'Internal Server Error' });
    if (mishap === 'refused') return answer(422, { title: 'Unprocessable Entity', field: 'on_demand' });
    const request = `${route} ${id} ${init.body}`;
    const replay = idempotencyKey === null ? undefined : stored.get(idempotencyKey);
    if (replay !== undefined && replay.request !== request) return answer(409, { title: 'Conflict' });
    const result = replay ?? perform();
    if (idempotencyKey !== null && result.status < 300) stored.set(idempotencyKey, { ...result, request });
    if (mishap === 'effect without response') throw new TypeError('fetch failed');
    return answer(result.status, result.body);

    function perform() {
      try {
        return { status: 200, body: structuredClone(handlers[route]?.(id, body, searchParams)) };
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        return { status: error.status, body: { title: error.message, field: error.message } };
      }
    }
  };

  return {
    send,
    payments,
    requests,
    secrets: { key },
    /** Makes the next requests of a route misbehave. */
    misbehave(route: string, ...kinds: readonly Misbehaviour[]): void {
      misbehaviours.set(route, [...(misbehaviours.get(route) ?? []), ...kinds]);
    },
    /** The customer pays: a card is authorised, and another method is paid. */
    pay(id: string, { amount }: { readonly amount?: string } = {}): Payment {
      const payment = found(id);
      const now = new Date().toISOString();
      if (amount !== undefined) Object.assign(payment.amount, { value: amount });
      if (payment.isManual) Object.assign(payment, { status: 'authorized', authorizedAt: now });
      else Object.assign(payment, { status: 'paid', paidAt: now });
      return payment;
    },
    /** The capture of a payment, which is asynchronous, succeeds. */
    completeCapture(id: string): void {
      const payment = found(id);
      const [capture] = payment._embedded.captures;
      if (capture === undefined) throw new Error(`${id} was not captured`);
      capture.status = 'succeeded';
      Object.assign(payment, { status: 'paid', paidAt: new Date().toISOString() });
    },
    /** The merchant captures a part of an authorisation in Mollie's dashboard. */
    captureByHand(id: string, value: string): void {
      const amount = { currency: found(id).amount.currency, value };
      handlers['POST /payments/{id}/captures']?.(id, { amount }, new URLSearchParams());
      this.completeCapture(id);
    },
    /** The merchant refunds a part of a payment in Mollie's dashboard. */
    refundByHand(id: string, value: string): void {
      const amount = { currency: found(id).amount.currency, value };
      handlers['POST /payments/{id}/refunds']?.(id, { amount }, new URLSearchParams());
    },
    /** The bank takes back the money of a payment, or reverses that. */
    chargeBack(id: string): { readonly id: string; reversedAt?: string } {
      const { amount, _embedded } = found(id);
      const taken = {
        id: `chb_${id}`,
        paymentId: id,
        amount,
        createdAt: new Date().toISOString(),
        reason: { code: 'AC01' },
      };
      _embedded.chargebacks.push(taken);
      return taken;
    },
    /** The payment ends without money. */
    end(id: string, status: 'failed' | 'expired' | 'canceled'): void {
      found(id).status = status;
    },
  };
}

class ApiError extends Error {
  readonly status: number;

  constructor(status: number, field: string) {
    super(field);
    this.status = status;
  }
}

const answer = (status: number, body: unknown) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } });

function checkAmount(amount: unknown): void {
  const { currency, value } = Object(amount);
  const decimals = minorUnitOf(`${currency}`);
  const pattern = decimals === 0 ? /^\d+$/ : new RegExp(`^\\d+\\.\\d{${decimals}}$`);
  if (typeof value !== 'string' || !pattern.test(value)) throw new ApiError(422, 'amount');
}

/** Returns what Mollie shows of a payment. Only a single payment can embed its captures, refunds and chargebacks. */
function shown({ _embedded, ...payment }: Payment, embed: readonly string[] = []) {
  const sumOf = (parts: readonly Pick<Refund, 'status' | 'amount'>[], done: string) => {
    const values = parts.filter(({ status }) => status === done).map(({ amount }) => Number(amount.value));
    const sum = values.reduce((total, value) => total + value, 0);
    return { currency: payment.amount.currency, value: sum.toFixed(minorUnitOf(payment.amount.currency)) };
  };
  return {
    ...payment,
    ...(payment.isManual && { amountCaptured: sumOf(_embedded.captures, 'succeeded') }),
    ...(payment.status === 'paid' && { amountRefunded: sumOf(_embedded.refunds, 'refunded') }),
    _embedded: Object.fromEntries(Object.entries(_embedded).filter(([name]) => embed.includes(name))),
  };
}

/** Rejects a payment that Mollie's documentation does not allow. */
function checkOpen(body: Readonly<Record<string, unknown>>): void {
  const unknown = Object.keys(body).find((name) => !openMembers.includes(name));
  if (unknown !== undefined) throw new ApiError(422, unknown);
  checkAmount(body.amount);
  const { description, redirectUrl, webhookUrl, method, captureMode, locale, metadata } = body;
  if (typeof description !== 'string' || description === '') throw new ApiError(422, 'description');
  if (!URL.canParse(`${redirectUrl}`)) throw new ApiError(422, 'redirectUrl');
  if (webhookUrl !== undefined && /^http:|localhost|127\.0\.0\.1/.test(`${webhookUrl}`))
    throw new ApiError(422, 'webhookUrl');
  if (!activeMethods.includes(`${method}`)) throw new ApiError(422, 'method');
  if (captureMode === 'manual' && !manualMethods.includes(`${method}`)) throw new ApiError(422, 'captureMode');
  if (locale !== undefined && !/^[a-z]{2}_[A-Z]{2}$/.test(`${locale}`)) throw new ApiError(422, 'locale');
  checkMetadata(metadata);
}

function checkMetadata(metadata: unknown): void {
  if (Buffer.byteLength(JSON.stringify(metadata ?? {})) > 1_024) throw new ApiError(422, 'metadata');
}
