import type { Credentials } from '@order-gateway/domain/accounts';
import { disputeStatuses, formatTime, refundStatuses } from '@order-gateway/domain/orders';
import {
  carrierOf,
  type FixtureCall,
  type FixtureSet,
  JsonNumber,
  jsonPath,
  type Members,
  type OperationName,
  operations,
  type Protocol,
  protocols,
  writeJson,
} from '@order-gateway/fixtures';
import { fillCall } from '@order-gateway/fixtures/replay';
import type { OutgoingCall } from '@order-gateway/fixtures/wire';
import type { JournalRequest } from '../../audit/journal.ts';
import { createOrders, metadataOf, orderIdPrefix, type SentOrder } from '../../workload/orders.ts';
import { type Seeded, seededAt } from '../../workload/seeded.ts';
import { type LoadSettings, shares } from '../profile/profile.ts';

/** One call of a run: an operation of the API, or an operator's command that ends a refund in the database. */
export interface LoadCall extends Omit<OutgoingCall, 'operation'> {
  readonly operation: OperationName | 'FailRefund';
  readonly protocol: Protocol;
  /**
   * The order that the call is about, with its number in the run; `undefined` for a list or a call that must fail.
   */
  readonly order: { readonly number: number; readonly orderId: string } | undefined;
  /** The correct outcomes. */
  readonly expected: readonly string[];
}

/** The settings that decide a run's calls. */
export type CallSettings = Pick<
  LoadSettings,
  'protocol' | 'merchants' | 'seed' | 'metadata_share' | (typeof shares)[number][1]
>;

/** The data of an acknowledged order, for calls about the payment of that order. */
export interface KnownOrder {
  readonly order_token: string;
  readonly created_at: string;
}

/** The data for calls about earlier orders. */
export interface OrderLife {
  /** The account that starts, ends and records payments; `undefined` if the run has no such calls. */
  readonly checkout: Credentials | undefined;
  /**
   * Returns `undefined` for an order whose creation was not acknowledged, or was acknowledged so long ago that the
   * order was forgotten.
   */
  readonly known: (number: number) => KnownOrder | undefined;
}

/** The random values for different properties of a call use indexes that are far apart. */
const kindIndex = 0x20000000;
const sourceIndex = 0x40000000;

/**
 * An order that a later call concerns is at most about this many calls old, because a client without a response retries
 * soon.
 */
const replayReach = 500;

/**
 * The correct outcomes of each operation. They include errors, because concurrent calls about an order can exclude each
 * other, such as a payment and a cancellation.
 */
const successes = {
  CreateOrder: ['created', 'replayed'],
  GetOrder: ['ok'],
  RecordPayment: ['ok', 'replayed', 'order_already_paid', 'order_cancelled'],
  CancelOrder: ['ok', 'replayed', 'payment_in_progress', 'order_already_paid', 'order_expired'],
  StartPayment: [
    ...(['ok', 'payment_in_progress', 'payment_attempt_ended'] as const),
    ...(['order_already_paid', 'order_cancelled', 'order_expired'] as const),
  ],
  EndPayment: ['ok', 'replayed'],
  ListOrders: ['ok'],
  CreateRefund: ['created', 'replayed', 'order_not_paid', 'refund_exceeds_payment', 'refund_id_conflict'],
  RecordRefund: ['ok', 'replayed', 'not_found', 'refund_id_conflict'],
  RecordDispute: ['ok', 'replayed', 'not_found'],
  FailRefund: ['ok', 'not_pending', 'known_to_provider'],
} as const;

/** Returns the kind of the call with this number. */
export function kindOf(settings: CallSettings, number: number): 'new' | (typeof shares)[number][0] {
  let remainder = seededAt(settings.seed, kindIndex + number).fraction();
  for (const [kind, name] of shares) {
    if (remainder < settings[name]) return kind;
    remainder -= settings[name];
  }
  return 'new';
}

/** Returns the number of the order that a valid call is about: its own number, or the number of an earlier call. */
export function orderNumberOf(settings: CallSettings, number: number): number {
  if (kindOf(settings, number) === 'new' || number === 0) return number;
  let earlier = number - 1 - seededAt(settings.seed, sourceIndex + number).below(Math.min(number, replayReach));
  while (earlier >= 0 && kindOf(settings, earlier) !== 'new') earlier -= 1;
  return earlier >= 0 ? earlier : number;
}

/**
 * Returns a function that makes a run's calls, each from its number alone, so that a second run makes the same calls.
 * If the creation of an order was not acknowledged, a later call about the order creates it again.
 */
export function createCallMaker(
  settings: CallSettings,
  set: FixtureSet,
  credentials: readonly Credentials[],
  life: OrderLife = { checkout: undefined, known: () => undefined },
): (number: number) => LoadCall {
  const choices = settings.protocol === 'mixed' ? protocols : ([settings.protocol] as const);
  const failing = new Map(choices.map((protocol) => [protocol, failingCalls(protocol, set)]));
  const orderOf = createOrders(set.validOrder, settings);
  return (number) => {
    const random = seededAt(settings.seed, number);
    const protocol = random.pick(choices);
    const kind = kindOf(settings, number);
    if (kind === 'invalid' || kind === 'list') {
      const account = given(credentials[random.below(settings.merchants)]);
      if (kind === 'list') {
        const metadata = metadataOf(settings, random);
        const request = { limit: new JsonNumber('20'), ...(metadata && { metadata }) };
        return operationCall('ListOrders', request, { protocol, account });
      }
      const [first, ...others] = failing.get(protocol) ?? [];
      if (first === undefined) throw new Error(`there is no failing fixture for ${protocol}`);
      const orderId = `${orderIdPrefix(settings.seed)}${number}`;
      const context = {
        merchants: { first: account },
        orderId,
        validOrder: set.validOrder,
        startedAtMs: 0,
        responses: [],
      };
      const { outgoing, expect } = fillCall(random.pick([first, ...others]), context);
      return { ...outgoing, protocol, order: undefined, expected: [expect.outcome] };
    }
    const orderNumber = orderNumberOf(settings, number);
    const { merchant, fields, metadata } = orderOf(orderNumber);
    const order = { number: orderNumber, orderId: fields.order_id ?? '' };
    const account = given(credentials[merchant]);
    const [amount, known] = [new JsonNumber(fields.order_amount ?? ''), life.known(orderNumber)];
    if (known !== undefined && (kind === 'pay' || kind === 'start' || kind === 'end')) {
      const callContext = { protocol, account: given(life.checkout), order };
      const { order_token } = known;
      // Each order has two attempts. Some are started or ended twice.
      const attempt = { order_token, attempt_id: `attempt-${random.below(2)}-of-${order.orderId}` };
      if (kind === 'start') {
        return operationCall('StartPayment', { ...attempt, lease_seconds: new JsonNumber('60') }, callContext);
      }
      if (kind === 'end') return operationCall('EndPayment', attempt, callContext);
      const payment = {
        ...(settings.start_share > 0 ? attempt : { order_token }),
        // Some orders are paid twice, and some payments are reported twice.
        payment_id: `payment-${random.below(2)}-of-${order.orderId}`,
        paid_at: known.created_at,
        order_amount: amount,
        order_currency: fields.order_currency,
      };
      return operationCall('RecordPayment', payment, callContext);
    }
    if (known !== undefined && kind === 'refund') {
      const refund = refundsOf(order.orderId, fields.order_amount ?? '')[random.below(3)];
      return operationCall('CreateRefund', { order_id: order.orderId, ...refund }, { protocol, account, order });
    }
    if (known !== undefined && kind === 'fail') {
      const { refund_id } = refundsOf(order.orderId, fields.order_amount ?? '')[random.below(3)] ?? {};
      const request = { order_token: known.order_token, refund_id };
      const { FailRefund: expected } = successes;
      const notSent = { method: '', path: undefined, headers: {}, bytes: undefined };
      return { operation: 'FailRefund', order, request, protocol, expected, ...notSent };
    }
    if (known !== undefined && kind === 'report') {
      const { operation, request } = reportOf(order.orderId, fields, known, random);
      const { order_token } = known;
      return operationCall(operation, { order_token, ...request }, { protocol, account: given(life.checkout), order });
    }
    if (known !== undefined && (kind === 'get' || kind === 'cancel')) {
      const operation = kind === 'get' ? 'GetOrder' : 'CancelOrder';
      return operationCall(operation, { order_id: order.orderId }, { protocol, account, order });
    }
    const request = { ...fields, order_amount: amount, ...(metadata && { metadata }) };
    return operationCall('CreateOrder', request, { protocol, account, order });
  };
}

/** Returns the refunds that the merchant can request: two parts of the payment, and what is left of it. */
function refundsOf(orderId: string, orderAmount: string) {
  const parts = [0.4, 0.5].map((share) => partOf(orderAmount, share));
  return [...parts, undefined].map((refund_amount, index) => ({
    refund_id: `refund-${index}-of-${orderId}`,
    ...(refund_amount && { refund_amount }),
  }));
}

/** Draws the report of one of the merchant's refunds, of a refund that was made at the provider, or of a dispute. */
function reportOf(
  orderId: string,
  { order_amount = '', order_currency }: SentOrder['fields'],
  { created_at }: KnownOrder,
  random: Seeded,
) {
  const payment = { payment_id: `payment-${random.below(2)}-of-${orderId}` };
  if (random.below(4) === 0) {
    const dispute = { ...payment, dispute_id: `dispute-of-${orderId}`, amount: partOf(order_amount, 0.3) };
    const status = random.pick(disputeStatuses);
    const request = { ...dispute, currency: order_currency, status, ...(status !== 'WON' && { reason: 'fraudulent' }) };
    return { operation: 'RecordDispute', request } as const;
  }
  const isMerchants = random.below(3) > 0;
  // A refund that was made at the provider can be of the whole payment, as those of refused payments are.
  const refunds = refundsOf(orderId, order_amount);
  const { refund_id, refund_amount = new JsonNumber(order_amount) } = refunds[random.below(isMerchants ? 2 : 3)] ?? {};
  const status = random.pick(refundStatuses);
  // Some providers say when a refund succeeded, or why it failed.
  const detail =
    status === 'FAILED'
      ? { reason: 'expired_or_canceled_card' }
      : { refunded_at: formatTime(Date.parse(created_at) + 1_000 * random.below(60)) };
  const request = {
    ...payment,
    ...(isMerchants && { refund_id }),
    provider_refund_id: `${isMerchants ? 'of' : 'own'}-${refund_id}`,
    amount: refund_amount,
    status,
    ...(status !== 'PENDING' && random.below(2) === 0 && detail),
  };
  return { operation: 'RecordRefund', request } as const;
}

/** Returns a share of an amount, with two decimals. */
function partOf(amount: string, share: number): JsonNumber {
  return new JsonNumber(Math.max(0.01, Number(amount) * share).toFixed(2));
}

/** The account, order and protocol of a call. If the protocol does not support the operation, gRPC is used. */
interface CallContext {
  readonly protocol: Protocol;
  readonly account: Credentials;
  readonly order?: LoadCall['order'];
}

/** Returns a call of an operation. */
export function operationCall(
  operation: Exclude<keyof typeof successes, 'FailRefund'>,
  request: Members,
  { protocol, account, order }: CallContext,
): LoadCall {
  const { json } = operations[operation];
  const credentials = { 'x-client-id': account.clientId, 'x-client-secret': account.clientSecret };
  return {
    operation,
    order,
    request,
    protocol: carrierOf(operation, protocol),
    expected: successes[operation],
    method: json?.verb ?? 'POST',
    path: json && jsonPath(json, request),
    bytes: Buffer.from(writeJson(request)),
    headers: { ...credentials, 'content-type': 'application/json' },
  };
}

/** Returns the request of a call in the journal's form, or `undefined` for a call that must fail. */
export function requestOf({ operation, request = {}, order, headers }: LoadCall): JournalRequest | undefined {
  if (operation === 'ListOrders') return { kind: 'read' };
  if (order === undefined) return undefined;
  const checkout = String(headers['x-client-id']);
  const text = (name: string) => {
    const value = request[name];
    return value instanceof JsonNumber ? value.text : String(value);
  };
  const attempt = { checkout, attemptId: text('attempt_id') };
  switch (operation) {
    case 'CreateOrder':
      return { kind: 'create' };
    case 'GetOrder':
      return { kind: 'read' };
    case 'CancelOrder':
      return { kind: 'cancel' };
    case 'StartPayment':
      return { kind: 'start', attempt, leaseMs: 1_000 * Number(text('lease_seconds')) };
    case 'EndPayment':
      return { kind: 'end', attempt };
    case 'RecordPayment': {
      const paid = { paymentId: text('payment_id'), paidAtMs: Date.parse(text('paid_at')) };
      const money = { amount: text('order_amount'), currency: text('order_currency') };
      const ofAttempt = request.attempt_id === undefined ? {} : { attempt };
      return { kind: 'pay', payment: { checkout, ...paid, ...money }, ...ofAttempt };
    }
    case 'CreateRefund': {
      const amount = request.refund_amount === undefined ? {} : { amount: text('refund_amount') };
      return { kind: 'refund', refundId: text('refund_id'), ...amount };
    }
    case 'RecordRefund': {
      const refundId = request.refund_id === undefined ? null : text('refund_id');
      const providerId = request.provider_refund_id === undefined ? null : text('provider_refund_id');
      const status = text('status') as (typeof refundStatuses)[number];
      const ids = { checkout, paymentId: text('payment_id'), refundId, providerId };
      const refundedAtMs = request.refunded_at === undefined ? {} : { refundedAtMs: Date.parse(text('refunded_at')) };
      const money = { amount: text('amount'), ...refundedAtMs };
      return { kind: 'record refund', ...ids, ...money, status, ...reasonOf(request) };
    }
    case 'RecordDispute': {
      const status = text('status') as (typeof disputeStatuses)[number];
      const [paymentId, disputeId] = [text('payment_id'), text('dispute_id')];
      const money = { amount: text('amount'), currency: text('currency') };
      return { kind: 'record dispute', checkout, paymentId, disputeId, ...money, status, ...reasonOf(request) };
    }
    case 'FailRefund':
      return { kind: 'fail refund', refundId: text('refund_id') };
    default:
      return undefined;
  }
}

function reasonOf({ reason }: Members) {
  return reason === undefined ? {} : { reason: String(reason) };
}

function given(credentials: Credentials | undefined): Credentials {
  if (credentials === undefined) throw new Error('there are no credentials for a call');
  return credentials;
}

/**
 * The outcomes of calls that must fail. Each is determined by the call alone and keeps the connection open. A body
 * above the limit would close the connection, so the run would measure connection setup.
 */
const failingOutcomes = ['invalid_order', 'malformed_json', 'unauthenticated', 'checksum_mismatch'];

/**
 * Returns failing calls that a protocol can carry. Takes only first calls of fixtures, because later calls depend on
 * them.
 */
function failingCalls(protocol: Protocol, { fixtures }: FixtureSet): FixtureCall[] {
  return fixtures.flatMap(({ calls: [call], merchants }) => {
    if (call?.operation !== 'CreateOrder' || call.via !== undefined || call.path !== undefined) return [];
    const fits = call.protocols.includes(protocol) && [...merchants].every((name) => name === 'first');
    return fits && failingOutcomes.includes(call.expect.outcome) ? [call] : [];
  });
}
