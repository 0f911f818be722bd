import { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import type { CheckoutSystem } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import {
  decide,
  formatTime,
  isHeldBy,
  type LinkedOrder,
  mayBeEnded,
  type Order,
  refusalCodes,
  startFailure,
} from '@order-gateway/domain/orders';
import {
  type AttemptInput,
  type PaymentInput,
  parseAttempt,
  parseLinkToken,
  parsePayment,
} from '@order-gateway/domain/payments';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { type ReturnSigning, returnUrlFor } from '@order-gateway/domain/signing';
import { type Caller, type Operation, outcomeOf } from '../calls/operation.ts';
import { storageFailure } from '../calls/store-failure.ts';
import { brandResponse } from './brands.ts';
import { orderRecord, type RecordDeps } from './orders.ts';
import { listRefunds, recordDispute, recordRefund } from './refunds.ts';
import { type OperationDeps, operationsOf } from './service.ts';
import { type ChangedOrder, changeOrder, findForPayment, findLinkToPay, findPaymentLink } from './stored-orders.ts';

type RecordPaymentDeps = Pick<OperationDeps, 'store' | 'countRefusal'>;

/** Creates the operations that checkout systems perform on the order of a payment link. */
export function paymentOperations(
  deps: RecordPaymentDeps & RecordDeps & Pick<OperationDeps, 'now' | 'signingSecrets'>,
): Operation[] {
  return operationsOf(CheckoutService, {
    async resolvePaymentLink(members, caller) {
      const token = parseLinkToken(members);
      if (!token.ok) return token;
      const link = await findLinkToPay(deps, caller, token.value);
      if (!link.ok) return link;
      return success({ body: { order: checkoutOrder(deps, link.value) }, outcome: 'ok' });
    },

    async startPayment(members, caller: Caller<CheckoutSystem>) {
      const started = await startPayment(deps, caller, members);
      if (!started.ok) return started;
      const { link, leaseEndsAtMs } = started.value;
      const body = {
        order: checkoutOrder(deps, link),
        lease_ends_at: formatTime(leaseEndsAtMs),
        customer: caller.account.getsCustomerData ? customerOf(link.order) : undefined,
      };
      return success({ body, outcome: 'ok' });
    },

    async endPayment(members, caller) {
      const ended = await endPayment(deps, caller, members);
      if (!ended.ok) return ended;
      return success({ body: { order: checkoutOrder(deps, ended.value.found) }, outcome: outcomeOf(ended.value) });
    },

    async recordPayment(members, caller: Caller<CheckoutSystem>) {
      const recorded = await recordPayment(deps, caller, members);
      if (!recorded.ok) return recorded;
      const order = checkoutOrder(deps, recorded.value.found);
      const { payment_id = '', paid_at = '' } = order;
      return success({ body: { order, payment_id, paid_at }, outcome: outcomeOf(recorded.value) });
    },

    listRefunds: (members, caller: Caller<CheckoutSystem>) => listRefunds(deps, caller, members),
    recordRefund: (members, caller: Caller<CheckoutSystem>) => recordRefund(deps, caller, members),
    recordDispute: (members, caller: Caller<CheckoutSystem>) => recordDispute(deps, caller, members),
  });
}

/** Claims the order of a payment link for a payment attempt, or extends the attempt's lease. */
async function startPayment(
  deps: Pick<OperationDeps, 'store' | 'now'>,
  caller: Caller,
  input: AttemptInput,
): Promise<Result<{ readonly link: LinkedOrder; readonly leaseEndsAtMs: number }, Failure>> {
  const parsed = parseAttempt(input);
  if (!parsed.ok) return parsed;
  const { orderToken, attemptId, leaseSeconds } = parsed.value;
  const attempt = { checkoutId: caller.account.id, attemptId };
  for (;;) {
    const found = await findLinkToPay(deps, caller, orderToken);
    if (!found.ok) return found;
    const { order } = found.value;
    const failure = startFailure(order, attempt, deps.now());
    if (failure !== undefined) return failed(failure);
    const outcome = await deps.store.startPayment(order, attempt, leaseSeconds, caller.timeLeftMs());
    if (outcome.kind === 'changed') return success({ link: found.value, leaseEndsAtMs: outcome.endsAtMs });
    if (outcome.kind !== 'conflict') return failed(storageFailure(outcome.kind));
  }
}

/** Ends a payment attempt. The call is a replay if the attempt does not hold the order of the payment link. */
async function endPayment(
  deps: Pick<OperationDeps, 'store'>,
  caller: Caller,
  { order_token, attempt_id }: AttemptInput,
): Promise<Result<ChangedOrder<LinkedOrder>, Failure>> {
  const parsed = parseAttempt({ order_token, attempt_id });
  if (!parsed.ok) return parsed;
  const { orderToken, attemptId } = parsed.value;
  const attempt = { checkoutId: caller.account.id, attemptId };
  let isEnded = false;
  let replayed = true;
  for (;;) {
    // The order is read again after the change, because an order past its expiry expires when its lease ends.
    const found = await findPaymentLink(deps.store.findByToken, caller, orderToken);
    if (!found.ok) return found;
    const { order } = found.value;
    if (isEnded || !mayBeEnded(order, attempt)) return success({ found: found.value, replayed });
    const outcome = await deps.store.endPayment(order, attempt, caller.timeLeftMs());
    if (outcome.kind === 'changed') {
      isEnded = true;
      replayed = !isHeldBy(order.lease, attempt);
    }
    if (outcome.kind !== 'changed' && outcome.kind !== 'conflict') return failed(storageFailure(outcome.kind));
  }
}

/**
 * Records the payment of an order, which is found by its payment link. If the request names a payment attempt, the
 * lease of the attempt ends, whether the payment is accepted or refused.
 */
export async function recordPayment(
  deps: RecordPaymentDeps,
  caller: Caller<CheckoutSystem>,
  input: PaymentInput,
): Promise<Result<ChangedOrder<LinkedOrder>, Failure>> {
  const parsed = parsePayment(input);
  if (!parsed.ok) return parsed;
  const { orderToken, attemptId, ...fields } = parsed.value;
  const { id: checkoutId, lateDays } = caller.account;
  const reported = { ...fields, checkoutId, lateDays };
  const recorded = await changeOrder(
    deps,
    caller,
    () => findForPayment(deps, caller, orderToken, reported),
    ({ order, isKnown, storedPaidOn, refused, nowMs }) =>
      decide(order, { kind: 'pay', payment: { ...reported, isKnown, storedPaidOn, refused } }, nowMs),
    ({ merchant }, code) => deps.countRefusal({ code, mode: merchant.mode }),
  );
  const isRefused = !recorded.ok && refusalCodes.some((code) => code === recorded.failure.kind);
  if (!isRefused || attemptId === undefined) return recorded;
  const ended = await endPayment(deps, caller, { order_token: orderToken, attempt_id: attemptId });
  return ended.ok ? recorded : ended;
}

/**
 * Builds the form of an order for checkout systems. It has more members than the message `CheckoutOrder`. The
 * additional members are dropped when the message is built.
 */
function checkoutOrder(deps: RecordDeps & Pick<OperationDeps, 'signingSecrets' | 'now'>, link: LinkedOrder) {
  const { order, merchant } = link;
  const record = orderRecord(order, merchant.mode, deps);
  return {
    ...record,
    merchant_name: merchant.name,
    merchant_id: merchant.clientId,
    customer_locale: order.fields.customer_locale || undefined,
    return_url: returnLink(deps, link),
    brand: merchant.brand === null ? undefined : brandResponse(merchant.brand, deps.baseUrl()),
  };
}

/** Returns the customer's data; `undefined` if it has been erased. */
export function customerOf({ fields, erasedDigest }: Order) {
  if (erasedDigest !== null) return undefined;
  const { customer_name, customer_email, customer_phone, customer_address_line1, customer_address_line2 } = fields;
  const { customer_address_city, customer_address_state, customer_address_country, customer_address_postal_code } =
    fields;
  return {
    customer_name,
    customer_email,
    customer_phone,
    customer_address_line1,
    customer_address_line2: customer_address_line2 || undefined,
    customer_address_city,
    customer_address_state,
    customer_address_country,
    customer_address_postal_code,
  };
}

/**
 * Returns the complete URL that takes the customer back to the merchant, with the order's current status. The URL is
 * signed if the merchant has a signing secret that SECRETS_KEY can decrypt.
 */
export function returnLink(deps: Pick<OperationDeps, 'signingSecrets' | 'now'>, link: LinkedOrder): string {
  return returnUrlFor(link.order, returnSigning(deps, link));
}

/** Returns how the return link of an order is signed now; `undefined` if it is not signed. */
export function returnSigning(
  { signingSecrets, now }: Pick<OperationDeps, 'signingSecrets' | 'now'>,
  { order, merchant }: LinkedOrder,
): ReturnSigning | undefined {
  const decrypt = (stored: Uint8Array) => signingSecrets?.decrypt(order.merchantId, stored);
  const [secret, previousSecret] = merchant.returnSecrets.map(decrypt);
  return secret && { secret, previousSecret, signedAtSeconds: Math.floor(now() / 1_000) };
}
