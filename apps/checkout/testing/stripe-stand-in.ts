import { Ajv, type ValidateFunction } from 'ajv';
import Stripe from 'stripe';
import slice from './data/stripe-openapi-slice.json' with { type: 'json' };
import samples from './data/stripe-samples.json' with { type: 'json' };

/** How the stand-in responds to the next request of a kind. */
export type Misbehaviour = 'effect without response' | '500' | '429' | 'refused';

interface Session {
  readonly id: string;
  readonly url: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly expires_at: number;
  readonly amount_total: number;
  readonly currency: string;
  status: 'open' | 'complete' | 'expired';
  payment_intent: Intent | null;
}

interface Intent {
  readonly id: string;
  readonly amount: number;
  readonly currency: string;
  readonly created: number;
  readonly metadata: Readonly<Record<string, string>>;
  status: 'requires_capture' | 'succeeded' | 'canceled' | 'processing';
  amount_received: number;
  cancellation_reason: string | null;
  latest_charge: { readonly id: string; readonly created: number; refunded: boolean };
}

interface Refund {
  readonly id: string;
  readonly payment_intent: string;
  readonly amount: number;
  readonly currency: string;
  readonly created: number;
  readonly metadata: Readonly<Record<string, string>>;
  /** Absent if no money moved. */
  readonly balance_transaction: string | null;
  status: 'succeeded' | 'pending' | 'failed';
  failure_reason?: string;
}

/** The longest page of a list. */
const pageLength = 100;

/** Sessions live for at least 30 minutes. */
const sessionSecondsMin = 1_800;

// The slice is older than the SDK. These parameters are those of the SDK's types.
const added: Readonly<Record<string, object>> = {
  adaptive_pricing: { type: 'object', properties: { enabled: { type: 'boolean' } }, additionalProperties: false },
  allowed_payment_method_types: { type: 'array', items: { type: 'string' } },
};

const seconds = () => Math.floor(Date.now() / 1_000);

let count = 0;

/** Returns an identifier that no other account has either, as Stripe's are. */
const newId = (prefix: string) => `${prefix}_${++count}`;

/**
 * Creates a stand-in of Stripe that keeps its state, checks every request against Stripe's OpenAPI document, honours
 * idempotency keys, signs webhooks with Stripe's SDK, and misbehaves on demand. It is ours, so it proves only our own
 * logic.
 */
export function createStripeStandIn({ key = 'rk_test_stand_in', webhookSecret = 'whsec_stand_in' } = {}) {
  const sessions = new Map<string, Session>();
  const stored = new Map<string, { readonly request: string; readonly status: number; readonly body: unknown }>();
  const events: { readonly id: string; readonly created: number; readonly [member: string]: unknown }[] = [];
  const misbehaviours = new Map<string, Misbehaviour[]>();
  const requests: { readonly route: string; readonly key: string | undefined; readonly body: unknown }[] = [];
  const refunds: Refund[] = [];
  /** The parts of authorisations that were not captured, which Stripe lists as refunds. */
  const releases: Refund[] = [];
  const disputes: { readonly id: string; readonly payment_intent: string; status: string }[] = [];
  const refundedOf = (intent: string) =>
    refunds
      .filter((refund) => refund.payment_intent === intent && refund.status !== 'failed')
      .reduce((sum, { amount }) => sum + amount, 0);
  const ofPayment = <Item extends { readonly payment_intent: string }>(items: readonly Item[], intent: unknown) => ({
    object: 'list',
    has_more: false,
    data: items.filter(({ payment_intent }) => payment_intent === intent).toReversed(),
  });
  const intentOf = (id: string) =>
    [...sessions.values()].map(({ payment_intent: intent }) => intent).find((intent) => intent?.id === id);
  const record = (type: string, object: object) => {
    events.push({ ...samples.event, id: newId('evt'), type, created: seconds(), data: { object } });
  };

  const handlers: Readonly<Record<string, (id: string, body: Readonly<Record<string, unknown>>) => object>> = {
    'GET /v1/account': () => ({ ...samples.account, id: 'acct_stand_in' }),
    'GET /v1/events'(_id, { created, starting_after: after }) {
      const since = Number(Object(created).gte ?? 0);
      const listed = events.filter((event) => event.created >= since).toReversed();
      const start = listed.findIndex(({ id }) => id === after) + 1;
      return {
        object: 'list',
        has_more: start + pageLength < listed.length,
        data: listed.slice(start, start + pageLength),
      };
    },
    'POST /v1/checkout/sessions'(_id, body) {
      const [item] = body.line_items as [{ price_data: { unit_amount: string; currency: string } }];
      if (Number(body.expires_at) < seconds() + sessionSecondsMin) throw invalid('expires_at');
      const { currency, unit_amount: amount } = item.price_data;
      // The account is paid out in euros, and 50 cents are more than this.
      if (currency === 'isk' && Number(amount) < 5_000) throw invalid('line_items', 'amount_too_small');
      const id = newId('cs_test');
      const session: Session = {
        id,
        url: `https://checkout.stripe.example/${id}`,
        metadata: body.metadata as Session['metadata'],
        expires_at: Number(body.expires_at),
        amount_total: Number(amount),
        currency,
        status: 'open',
        payment_intent: null,
      };
      sessions.set(id, session);
      return { ...samples['checkout.session'], ...session };
    },
    'GET /v1/checkout/sessions'(_id, { starting_after: after }) {
      const listed = [...sessions.values()].toReversed();
      const start = listed.findIndex(({ id }) => id === after) + 1;
      const data = listed
        .slice(start, start + pageLength)
        .map((session) => ({ ...samples['checkout.session'], ...session }));
      return { object: 'list', has_more: start + pageLength < listed.length, data };
    },
    'GET /v1/checkout/sessions/{session}': (id) => ({ ...samples['checkout.session'], ...found(sessions.get(id)) }),
    'POST /v1/checkout/sessions/{session}/expire'(id) {
      const session = found(sessions.get(id));
      if (session.status !== 'open') throw invalid('session');
      session.status = 'expired';
      return { ...samples['checkout.session'], ...session };
    },
    'POST /v1/payment_intents/{intent}/capture'(id) {
      const intent = found(intentOf(id));
      if (intent.status !== 'requires_capture') throw invalid('intent', 'payment_intent_unexpected_state');
      Object.assign(intent, { status: 'succeeded', amount_received: intent.amount });
      record('payment_intent.succeeded', intent);
      return { ...samples.payment_intent, ...intent };
    },
    'POST /v1/payment_intents/{intent}/cancel'(id) {
      const intent = found(intentOf(id));
      if (intent.status !== 'requires_capture') throw invalid('intent', 'payment_intent_unexpected_state');
      Object.assign(intent, { status: 'canceled', cancellation_reason: 'abandoned' });
      return { ...samples.payment_intent, ...intent };
    },
    'POST /v1/refunds'(_id, body) {
      const intent = found(intentOf(`${body.payment_intent}`));
      const left = intent.amount_received - refundedOf(intent.id);
      const amount = Number(body.amount ?? left);
      if (intent.status !== 'succeeded' || left === 0) throw invalid('payment_intent', 'charge_already_refunded');
      if (amount > left) throw invalid('amount', 'amount_too_large');
      intent.latest_charge.refunded = amount === left;
      const { currency } = intent;
      const metadata = (body.metadata ?? {}) as Refund['metadata'];
      const refund: Refund = {
        id: newId('re'),
        payment_intent: intent.id,
        amount,
        currency,
        created: seconds(),
        metadata,
        balance_transaction: newId('txn'),
        status: 'succeeded',
      };
      refunds.push(refund);
      record('charge.refunded', { id: intent.latest_charge.id, payment_intent: intent.id });
      return { ...samples.refund, ...refund };
    },
    'GET /v1/refunds': (_id, body) => ofPayment([...releases, ...refunds], body.payment_intent),
    'GET /v1/disputes': (_id, body) => ofPayment(disputes, body.payment_intent),
  };

  /** Takes the place of `fetch`. */
  const send = async (url: string, init: RequestInit): Promise<Response> => {
    const { pathname, search } = new URL(url);
    const { route, template, id } = routeOf(init.method ?? 'GET', pathname);
    const headers = new Headers(init.headers);
    if (headers.get('authorization') !== `Bearer ${key}`)
      return answer(401, errorOf('invalid_request_error', 'api_key_invalid'));
    const text = init.method === 'POST' ? `${init.body ?? ''}` : search.slice(1);
    const body = nested(new URLSearchParams(text));
    const idempotencyKey = headers.get('idempotency-key') ?? undefined;
    requests.push({ route, key: idempotencyKey, body });
    const mishap = misbehaviours.get(route)?.shift();
    if (mishap === '429') return answer(429, errorOf('rate_limit_error', 'rate_limit'));
    const replay = idempotencyKey === undefined ? undefined : stored.get(idempotencyKey);
    const request = `${pathname} ${text}`;
    if (replay !== undefined)
      return replay.request === request
        ? answer(replay.status, replay.body)
        : answer(400, errorOf('idempotency_error', 'idempotency_key_reused'));
    const result = perform();
    // Stripe stores no result of a request that was not valid.
    if (idempotencyKey !== undefined && result.status !== 400) stored.set(idempotencyKey, { request, ...result });
    if (mishap === 'effect without response') throw new TypeError('fetch failed');
    return answer(result.status, result.body);

    function perform(): { status: number; body: unknown } {
      if (mishap === '500') return { status: 500, body: errorOf('api_error', 'internal') };
      if (mishap === 'refused') return { status: 400, body: errorOf('invalid_request_error', 'refused_on_demand') };
      try {
        if (init.method === 'POST') check(template, body);
        return { status: 200, body: structuredClone(handlers[route]?.(id, body)) };
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        return { status: error.status, body: errorOf('invalid_request_error', error.code, error.param) };
      }
    }
  };

  return {
    send,
    sessions,
    requests,
    refunds,
    events,
    /** The merchant refunds a payment in Stripe's dashboard. */
    refundByHand: (intent: string, amount: number) =>
      handlers['POST /v1/refunds']?.('', { payment_intent: intent, amount }),
    /** The merchant captures a part of an authorisation in Stripe's dashboard. */
    captureByHand(intent: Intent, captured: number): void {
      const { id, amount, currency } = intent;
      Object.assign(intent, { status: 'succeeded', amount_received: captured });
      const released = { id: newId('re'), payment_intent: id, amount: amount - captured, currency, created: seconds() };
      releases.push({ ...released, metadata: {}, balance_transaction: null, status: 'succeeded' });
    },
    /** The bank returns the money of a refund. */
    failRefund(refund: Refund): void {
      Object.assign(refund, { status: 'failed', failure_reason: 'expired_or_canceled_card' });
      record('refund.failed', refund);
    },
    /** The customer disputes a payment, or the dispute is decided. */
    dispute({ id: intent, amount, currency }: Intent, status: string): void {
      const known = disputes.find(({ payment_intent }) => payment_intent === intent);
      const dispute = { ...samples.dispute, id: newId('dp'), payment_intent: intent, amount, currency, status };
      if (known === undefined) disputes.push(dispute);
      else known.status = status;
      record(known === undefined ? 'charge.dispute.created' : 'charge.dispute.closed', known ?? dispute);
    },
    secrets: { key, webhookSecret },
    /** Makes the next request of a route misbehave. */
    misbehave(route: string, ...kinds: readonly Misbehaviour[]): void {
      misbehaviours.set(route, [...(misbehaviours.get(route) ?? []), ...kinds]);
    },
    /** Returns the next misbehaviour of a route, and removes it. */
    drain: (route: string) => misbehaviours.get(route)?.splice(0) ?? [],
    /** The customer enters a card, which is authorised. */
    pay(sessionId: string, { amount }: { readonly amount?: number } = {}): Intent {
      const session = found(sessions.get(sessionId));
      if (session.status !== 'open') throw new Error(`the session is ${session.status}`);
      const created = seconds();
      session.status = 'complete';
      session.payment_intent = {
        id: newId('pi'),
        amount: amount ?? session.amount_total,
        currency: session.currency,
        created,
        metadata: session.metadata,
        status: 'requires_capture',
        amount_received: 0,
        cancellation_reason: null,
        latest_charge: { id: newId('ch'), created, refunded: false },
      };
      record('checkout.session.completed', session);
      return session.payment_intent;
    },
    /** The session ends without a payment. */
    expire(sessionId: string): void {
      found(sessions.get(sessionId)).status = 'expired';
      record('checkout.session.expired', found(sessions.get(sessionId)));
    },
    /** Returns the signed webhook of the newest event. */
    webhook({ secret = webhookSecret, timestamp = seconds() } = {}) {
      const body = JSON.stringify(events.at(-1));
      const signature = Stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp });
      return { body, headers: { 'content-type': 'application/json', 'stripe-signature': signature } };
    },
  };
}

class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly param: string;

  constructor(status: number, code: string, param: string) {
    super(code);
    this.status = status;
    this.code = code;
    this.param = param;
  }
}

const invalid = (param: string, code = 'parameter_invalid') => new ApiError(400, code, param);

function found<Value>(value: Value | null | undefined): Value {
  if (value == null) throw new ApiError(404, 'resource_missing', 'id');
  return value;
}

const errorOf = (type: string, code: string, param = '') => ({ error: { type, code, message: code, param } });

const answer = (status: number, body: unknown) =>
  new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } });

const ajv = new Ajv({ strict: false, coerceTypes: true, validateFormats: false });

type Schema = { readonly properties?: Readonly<Record<string, object>> };

type Operation = {
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
};

const paths = slice.paths as unknown as Readonly<Record<string, Readonly<Record<string, Operation>>>>;

const validators = new Map<string, ValidateFunction>();

function validatorOf(template: string): ValidateFunction {
  const schema = Object.values(paths[template]?.post?.requestBody?.content ?? {})[0]?.schema ?? {};
  const isSession = template === '/v1/checkout/sessions';
  return ajv.compile(isSession ? { ...schema, properties: { ...schema.properties, ...added } } : { ...schema });
}

/** Rejects a request that Stripe's document does not allow. */
function check(template: string, body: Readonly<Record<string, unknown>>): void {
  const validate = validators.getOrInsertComputed(template, validatorOf);
  if (!validate(structuredClone(body))) {
    const [{ instancePath = '', params = {} } = {}] = validate.errors ?? [];
    throw invalid(`${instancePath}${Object(params).additionalProperty ?? ''}`, 'parameter_unknown');
  }
}

/** Finds the path of the document for an address. */
function routeOf(method: string, pathname: string) {
  for (const template of Object.keys(paths)) {
    const match = new RegExp(`^${template.replace(/\{\w+\}/, '([^/]+)')}$`).exec(pathname);
    if (match !== null) return { route: `${method} ${template}`, template, id: match[1] ?? '' };
  }
  throw new Error(`Stripe's document has no path ${pathname}`);
}

/** Parses Stripe's form encoding, such as `line_items[0][quantity]=1`. */
function nested(form: URLSearchParams): Record<string, unknown> {
  const root: Record<string, unknown> = {};
  for (const [name, value] of form) {
    const keys = name.split(/[[\]]+/).filter((key) => key !== '');
    let target: Record<string, unknown> = root;
    for (const key of keys.slice(0, -1)) {
      target[key] ??= {};
      target = target[key] as Record<string, unknown>;
    }
    target[keys.at(-1) ?? ''] = value;
  }
  return asArrays(root) as Record<string, unknown>;
}

function asArrays(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, asArrays(item)] as const);
  if (entries.length > 0 && entries.every(([key], index) => key === `${index}`)) return entries.map(([, item]) => item);
  return Object.fromEntries(entries);
}
