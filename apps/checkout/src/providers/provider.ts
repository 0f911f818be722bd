import type { AmountHundredths } from '@order-gateway/domain/money';
import { parseRefund } from '@order-gateway/domain/payments';
import type { FastifyInstance } from 'fastify';
import type { Customer, SeenDispute, SeenRefund } from '../gateway/gateway.ts';
import type { Attempt, Connection } from '../store/store.ts';

/** The status of an attempt at its provider. */
export type Seen =
  /** The customer can still pay, or the outcome is not known yet. */
  | { readonly is: 'open' }
  /** The money is reserved until `captureBefore`, and can be captured, unless a capture has failed, or released. */
  | ({
      readonly is: 'authorised';
      readonly captureBefore?: Date | undefined;
      readonly hasCaptureFailed?: boolean;
    } & SeenPayment)
  /** The merchant has the money, of which a part may have been refunded. */
  | ({ readonly is: 'captured' } & SeenPayment)
  /** The customer got all of the money back. */
  | { readonly is: 'refunded' }
  /** The attempt can no longer be paid, and the customer was not charged. */
  | { readonly is: 'gone'; readonly reason: string };

/** A payment as the provider describes it. */
export interface SeenPayment {
  /** The provider's identifier of the payment. */
  readonly paymentId: string;
  /** When the customer authorised the payment, or paid. */
  readonly paidAt: Date;
  readonly amount: AmountHundredths;
  readonly currency: string;
}

/** Sends requests to providers. Tests replace it. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** All refunds and disputes of a payment. */
export interface SeenReversals<Refund = SeenRefund> {
  readonly refunds: readonly Refund[];
  readonly disputes: readonly SeenDispute[];
}

/** A refund, whose metadata can name one that a merchant requested. */
export interface ProviderRefund extends Omit<SeenRefund, 'refundId'> {
  readonly metadata?: unknown;
}

/** A refund of a payment. */
export interface RefundInput {
  /** The refund that the merchant requested; absent if the rest of a payment that the gateway refused is refunded. */
  readonly refundId?: string;
  readonly amount: AmountHundredths;
  readonly currency: string;
}

/** A provider with the account at it. */
interface AccountAt {
  readonly provider: Provider;
  readonly account: Account | undefined;
}

/** Reads the status of an attempt. Rejects with a {@link ProviderError}. */
export async function readStatus(
  { provider, account }: AccountAt,
  { sessionId }: Pick<Attempt, 'sessionId'>,
): Promise<Seen> {
  return sessionId === null ? { is: 'gone', reason: 'not_opened' } : provider.look(account, sessionId);
}

/** Reads the refunds and disputes of a payment. Rejects with a {@link ProviderError}. */
export async function readReversals({ provider, account }: AccountAt, attempt: Attempt): Promise<SeenReversals> {
  const { refunds, disputes } = await provider.reversals(account, attempt);
  return { refunds: refunds.map((refund) => withRefundId(refund, attempt)), disputes };
}

/**
 * Returns a refund with the merchant's refund that its metadata name, unless it is the provider's own. Other programs
 * write metadata too, so they must also name the order, by either of its ids, and a valid refund_id.
 */
export function withRefundId(
  { metadata, ...refund }: ProviderRefund,
  { orderId, serviceOrderId }: Pick<Attempt, 'orderId' | 'serviceOrderId'>,
): SeenRefund {
  const { order_id, service_order_id, refund_id } = Object(metadata);
  const isOfOrder = order_id === orderId || service_order_id === `${serviceOrderId}`;
  const named = parseRefund({ refund_id });
  return { ...refund, refundId: isOfOrder && named.ok ? named.value.refundId : undefined };
}

/** A merchant's account at a provider, with its secrets. */
export interface Account extends Pick<Connection, 'connectionId' | 'merchantId' | 'mode' | 'account' | 'settings'> {
  readonly secrets: Readonly<Record<string, string>>;
}

/** A way to pay. */
export interface Method {
  /** The provider's name of the method, which is also the key of its text. */
  readonly name: string;
  /** The number of decimals in which the provider counts a currency; `undefined` if it does not accept the currency. */
  decimals(currency: string): number | undefined;
  /** The range of amounts that the provider accepts, in hundredths. */
  range(currency: string): readonly [min: bigint, max: bigint];
}

/** A call that changes something at the provider. */
export interface Call<Input, Result> {
  /**
   * Returns what is sent, which is stored before it is sent. It contains neither the order token nor any of the
   * customer's data.
   */
  request(attempt: Attempt, input: Input): object;
  /** Sends a request under an idempotency key. Rejects with a {@link ProviderError}. */
  send(account: Account | undefined, request: object, key: string, customer?: Customer): Promise<Result>;
}

/** A session in which a customer can pay. */
export interface Session {
  readonly sessionId: string;
  readonly sessionUrl: string;
  readonly sessionEndsAt: Date;
}

/**
 * The codes with which Stripe and Mollie refuse the amount of an order, which never changes. The limits depend on the
 * currency in which the account is paid out, so they are known only then.
 */
export const amountRefusals = ['amount_too_small', 'amount_too_large', '422_amount'];

/** A way to pay that merchants connect and customers choose. */
export interface Offering {
  readonly name: string;
  readonly methods: readonly Method[];
  /** Whether an open session usually can't be closed, so that the customer can only continue it. */
  readonly keepsSessions?: boolean;
  /**
   * The names of the secrets of an account, in the order in which they are asked for. Only the first one is required.
   */
  readonly secretNames?: readonly string[];
  /**
   * Finds out which account secrets belong to, and its settings, of which `methods` are the names of those that the
   * account may use. Rejects with a {@link ProviderError}. A provider without this function needs no connected account,
   * and takes only the payments of test orders.
   */
  identify?(
    secrets: Account['secrets'],
  ): Promise<Pick<Account, 'account' | 'mode'> & Partial<Pick<Account, 'settings'>>>;
}

/** A provider of payments. Each one is a folder, and a line in `all.ts`. */
export interface Provider extends Offering {
  /** Opens a session from which the customer returns to `backUrl`. */
  readonly open: Call<{ readonly backUrl: string }, Session>;
  /** Captures an authorised payment. */
  readonly capture: Call<undefined, unknown>;
  /** Closes an open session, or releases an authorised payment. */
  readonly close: Call<Seen, unknown>;
  /** Refunds a payment, or a part of it. The metadata names the order, and the refund if the merchant requested it. */
  readonly refund: Call<RefundInput, ProviderRefund>;
  /** Reads the refunds and disputes of a payment. Rejects with a {@link ProviderError}. */
  reversals(account: Account | undefined, attempt: Attempt): Promise<SeenReversals<ProviderRefund>>;
  /** Lists the ids of attempts or payments whose refunds or disputes changed since a time. */
  reversed?(account: Account, since: Date): AsyncIterable<string>;
  /** Reads the status of an attempt by its session. Rejects with a {@link ProviderError}. */
  look(account: Account | undefined, sessionId: string): Promise<Seen>;
  /**
   * Returns the ids of the attempts or sessions that a webhook is about; `undefined` if the webhook is not the
   * provider's.
   */
  verify?(account: Account, headers: Readonly<Record<string, unknown>>, body: string): readonly string[] | undefined;
  /** Lists the ids of attempts or sessions that changed since a time. */
  recent?(account: Account, since: Date): AsyncIterable<string>;
  /** Lists the statuses of all attempts that started since a time. */
  history?(account: Account, since: Date): AsyncIterable<{ readonly attemptId: string; readonly seen: Seen }>;
  /** Adds pages of the provider's own. `wake` continues an attempt immediately. */
  routes?(app: FastifyInstance, wake: (attemptId: string) => Promise<unknown>): void;
}

/**
 * A call of a provider failed. `refused`: it had no effect, and repeating it never will. `failed`: the provider
 * responded with its own error, which it repeats for the same key. `unanswered`: it may have had an effect.
 */
export class ProviderError extends Error {
  override name = 'ProviderError';
  readonly kind: 'refused' | 'failed' | 'unanswered';
  readonly code: string;

  constructor(kind: ProviderError['kind'], code: string) {
    super(`${kind}: ${code}`);
    this.kind = kind;
    this.code = code;
  }
}
