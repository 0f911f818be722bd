import { Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { context, propagation } from '@opentelemetry/api';
import {
  type CheckoutOrder,
  CheckoutService,
  type Customer as ContractCustomer,
  type PendingRefund,
} from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import { DisputeStatus, RefundStatus } from '@order-gateway/contract/gateway/v1/order_pb';
import { ErrorInfoSchema } from '@order-gateway/contract/google/rpc/error_details_pb';
import type { Credentials } from '@order-gateway/domain/accounts';
import { type AmountHundredths, digitsOfDouble, formatAmount, parseAmount } from '@order-gateway/domain/money';
import { StartError } from '@order-gateway/runtime/process';
import { paymentOfAttempt } from '../store/schema.ts';
import type { Attempt } from '../store/store.ts';

export type { CheckoutOrder, PendingRefund } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
export { OrderStatus } from '@order-gateway/contract/gateway/v1/order_pb';

/** The customer's data that the gateway returns. It is sent to providers, but never stored. */
export type Customer = Pick<ContractCustomer, 'customerEmail'>;

/** The gateway, as a checkout system sees it. */
export type Gateway = ReturnType<typeof openGateway>;

/** The gateway's response to a call: an order, or an error code that repeating the call does not change. */
export type Answer =
  | { readonly order: CheckoutOrder; readonly customer?: Customer | undefined; readonly refused?: undefined }
  | { readonly refused: string };

const callTimeoutMs = 5_000;

/** The reasons why an attempt may not start, or may no longer continue. */
const startRefusals = [
  'not_found',
  'payment_in_progress',
  'payment_attempt_ended',
  'order_already_paid',
  'order_cancelled',
  'order_expired',
];

/** The only codes after which a payment is refunded. */
export const paymentRefusals: readonly string[] = [
  'order_already_paid',
  'order_cancelled',
  'order_expired',
  'payment_mismatch',
];

/** The codes with which the gateway can reject the time of a payment. */
const timeRefusals: readonly string[] = ['invalid_request', 'payment_id_conflict'];

/** A payment, with the time or the date on which the customer paid. */
export interface Payment extends Pick<Attempt, 'orderToken' | 'attemptId' | 'paidAt' | 'currency'> {
  readonly paymentId: string;
  readonly amount: bigint;
  readonly paidOn?: string;
}

/**
 * Opens a client of the gateway's gRPC port, which connects with the first call. `patience` multiplies the time limit
 * of a call.
 */
export function openGateway(baseUrl: string, { clientId, clientSecret }: Credentials, patience = 1) {
  const authenticate: Interceptor = (next) => (request) => {
    request.header.set('x-client-id', clientId);
    request.header.set('x-client-secret', clientSecret);
    propagation.inject(context.active(), request.header, { set: (header, name, value) => header.set(name, value) });
    return next(request);
  };
  const defaultTimeoutMs = callTimeoutMs * patience;
  const transport = createGrpcTransport({ baseUrl, interceptors: [authenticate], defaultTimeoutMs });
  const client = createClient(CheckoutService, transport);
  const report = ({ paidAt, paidOn, amount, currency, ...payment }: Payment, refusals: readonly string[]) =>
    answered(
      client.recordPayment({
        ...payment,
        ...(paidAt ? { paidAt: paidAt.toISOString() } : { paidOn: paidOn ?? '' }),
        orderAmount: Number(formatAmount(amount as AmountHundredths)),
        orderCurrency: currency,
      }),
      refusals,
    );
  /**
   * Records a payment. The gateway rejects a time at which it can't have been made: a bank can write midnight, before
   * the order existed, and a gateway with a wrong clock creates orders in the future. Then the date counts. If the
   * payment was stored with its date before, the time is a conflict.
   */
  const record = async (payment: Payment, refusals: readonly string[]): Promise<Answer> => {
    const { paidAt } = payment;
    if (paidAt === null) return report(payment, refusals);
    const answer = await report(payment, [...refusals, ...timeRefusals]);
    if (!timeRefusals.includes(answer.refused ?? '')) return answer;
    return report({ paidOn: paidAt.toISOString().slice(0, 10), ...payment, paidAt: null }, refusals);
  };
  return {
    /** Returns the order behind a payment link; `undefined` if there is none. */
    async resolve(orderToken: string): Promise<CheckoutOrder | undefined> {
      const answer = await answered(client.resolvePaymentLink({ orderToken }), ['not_found', 'invalid_request']);
      return answer.refused === undefined ? answer.order : undefined;
    },

    /** Claims the order of an attempt, or extends the claim, until a number of seconds from now. */
    start: ({ orderToken, attemptId }: Pick<Attempt, 'orderToken' | 'attemptId'>, leaseSeconds: number) =>
      answered(client.startPayment({ orderToken, attemptId, leaseSeconds }), startRefusals),

    /** Ends the claim of an attempt. An order that is gone has no claims. */
    end: ({ orderToken, attemptId }: Attempt): Promise<Answer> =>
      answered(client.endPayment({ orderToken, attemptId }), ['not_found']),

    /** Records the payment of an attempt, with the details that the provider reported. */
    record(attempt: Attempt): Promise<Answer> {
      const { orderToken, attemptId, paymentId, paidAt } = attempt;
      const payment = { orderToken, attemptId, paymentId: paymentId ?? '', paidAt, ...paymentOfAttempt(attempt) };
      return record(payment, paymentRefusals);
    },

    /** Yields the pending refunds of this checkout's payments, oldest first. Finally rejects if any may be missing. */
    async *pendingRefunds(): AsyncGenerator<PendingRefund> {
      let cursor: string | undefined;
      let isIncomplete = false;
      do {
        const page = await client.listRefunds({ limit: 100, ...(cursor && { cursor }) });
        isIncomplete ||= page.incomplete;
        yield* page.refunds;
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      if (isIncomplete)
        throw new StartError("Refunds are missing: the gateway can't reach a part of its database. Repeat this later.");
    },

    /**
     * Records a refund. Returns a code of {@link reversalRefusals}, or `undefined` if the gateway knows the refund. If
     * it rejects the time, as it can that of a payment, the refund is recorded without it.
     */
    async recordRefund({
      refundId,
      providerRefundId,
      status,
      amount,
      reason,
      refundedAt,
      ...payment
    }: Reported<SeenRefund>) {
      const refund = {
        ...payment,
        ...(refundId !== undefined && { refundId }),
        providerRefundId: providerRefundId ?? '',
        status: RefundStatus[status],
        amount: Number(formatAmount(amount)),
        reason: reason ?? '',
      };
      if (refundedAt === undefined) return refusalOf(client.recordRefund(refund));
      const refused = await refusalOf(client.recordRefund({ ...refund, refundedAt: refundedAt.toISOString() }));
      return refused === 'invalid_request' ? refusalOf(client.recordRefund(refund)) : refused;
    },

    /** Records a dispute, as `recordRefund` does. */
    recordDispute: ({ status, amount, ...dispute }: Reported<SeenDispute>) =>
      refusalOf(
        client.recordDispute({ ...dispute, status: DisputeStatus[status], amount: Number(formatAmount(amount)) }),
      ),

    /** Records a transfer. Codes outside {@link paymentRefusals} are for a person: the gateway stored nothing. */
    recordTransfer: (payment: Payment): Promise<Answer> =>
      record(payment, [...paymentRefusals, 'not_found', 'invalid_request', 'payment_id_conflict']),
  };
}

/** A refund as the provider describes it. */
export interface SeenRefund {
  /** The merchant's refund, from the provider's metadata; absent for a refund that was made at the provider. */
  readonly refundId?: string | undefined;
  /** Absent only for a refund that the provider refused. */
  readonly providerRefundId?: string | undefined;
  readonly status: 'PENDING' | 'SUCCEEDED' | 'FAILED';
  readonly amount: AmountHundredths;
  readonly reason?: string | undefined;
  readonly refundedAt?: Date | undefined;
}

/** A dispute as the provider describes it. */
export interface SeenDispute {
  readonly disputeId: string;
  readonly status: 'INQUIRY' | 'OPEN' | 'WON' | 'LOST';
  readonly amount: AmountHundredths;
  readonly currency: string;
  readonly reason: string;
}

/** A refund or dispute with its payment. */
type Reported<Seen> = Seen & Pick<Payment, 'orderToken' | 'paymentId'>;

/** The reasons why the gateway never records a refund or dispute, even if it is reported again. */
const reversalRefusals = ['not_found', 'refund_id_conflict', 'invalid_request'];

async function refusalOf(call: Promise<unknown>): Promise<string | undefined> {
  return (await unlessGatewayRefuses(call, reversalRefusals)).refused;
}

async function answered(
  call: Promise<{ readonly order?: CheckoutOrder | undefined; readonly customer?: Customer | undefined }>,
  refusals: readonly string[],
): Promise<Answer> {
  const { value, refused } = await unlessGatewayRefuses(call, refusals);
  if (refused !== undefined) return { refused };
  if (value?.order === undefined) throw new Error('the gateway returned no order');
  return { order: value.order, customer: value.customer };
}

/** Runs a call of which these error codes are an outcome. */
async function unlessGatewayRefuses<Value>(call: Promise<Value>, refusals: readonly string[]) {
  try {
    return { value: await call };
  } catch (error) {
    const code = ConnectError.from(error).findDetails(ErrorInfoSchema)[0]?.metadata.code ?? '';
    if (refusals.includes(code)) return { refused: code };
    throw error;
  }
}

/** Returns the error of a command whose call did not reach the gateway; `undefined` for another error. */
export function unreachable(error: unknown, baseUrl: string): StartError | undefined {
  if (!(error instanceof ConnectError) || error.code !== Code.Unavailable) return undefined;
  return new StartError(
    `The gateway can't be reached at ${baseUrl}: ${error.rawMessage}. Start it, or set GATEWAY_GRPC_URL to its gRPC port.`,
  );
}

/** Returns the exact amount of an order. */
export const amountOf = ({ orderAmount }: Pick<CheckoutOrder, 'orderAmount'>) => amountOfNumber(orderAmount);

/** Returns the exact value of an amount from the gateway. */
export function amountOfNumber(double: number): AmountHundredths {
  const amount = parseAmount(digitsOfDouble(double));
  if (!amount.ok) throw new Error('the gateway returned an invalid amount');
  return amount.value;
}
