import type { Failure } from '@gateway/domain/failure';
import { type FieldError, type TextRule, textError } from '@gateway/domain/field-rules';
import { parseTime, timeMessage } from '@gateway/domain/iso-time';
import { digitsOfDouble, parseAmount } from '@gateway/domain/money';
import type { LinkedOrder } from '@gateway/domain/order-store';
import { failed, type Result } from '@gateway/domain/result';
import type { Call } from '../call.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { type ChangedOrder, changeOrder } from './change-order.ts';
import { findPaymentLink } from './find-order.ts';

/** A payment as a checkout system sends it. Texts that were not set are empty. */
export interface PaymentInput {
  readonly orderToken: string;
  readonly paymentId: string;
  readonly paidAt: string;
  readonly orderAmount?: number | undefined;
  readonly orderCurrency: string;
}

const paymentIdRule: TextRule = { kind: 'text', required: true, lengthMin: 1, lengthMax: 128 };

/** Records the payment of an order, found by its payment link. */
export async function recordPayment(
  deps: GatewayDeps,
  call: Call,
  { orderToken, paymentId, paidAt, orderAmount, orderCurrency: currency }: PaymentInput,
): Promise<Result<ChangedOrder<LinkedOrder>, Failure>> {
  const errors: FieldError<string>[] = [];
  const missing = { code: 'missing', message: 'is required' } as const;
  const paymentIdError = paymentId === '' ? missing : textError(paymentIdRule, paymentId);
  if (paymentIdError !== undefined) errors.push({ field: 'payment_id', ...paymentIdError });
  const paidAtMs = parseTime(paidAt);
  if (paidAt === '') errors.push({ field: 'paid_at', ...missing });
  else if (paidAtMs === undefined) errors.push({ field: 'paid_at', code: 'bad_format', message: timeMessage });
  if (orderAmount === undefined) errors.push({ field: 'order_amount', ...missing });
  if (currency === '') errors.push({ field: 'order_currency', ...missing });
  if (paidAtMs === undefined || orderAmount === undefined || errors.length > 0) {
    return failed({ kind: 'invalid_request', errors });
  }
  const amount = parseAmount(digitsOfDouble(orderAmount));
  const payment = { paymentId, paidAtMs, amount: amount.ok ? amount.value : undefined, currency };
  return changeOrder(deps, call, () => findPaymentLink(deps, call, orderToken), { kind: 'pay', payment });
}
