import { randomUUID } from 'node:crypto';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Failure } from '@order-gateway/domain/failure';
import { formatAmount, minorUnitOf } from '@order-gateway/domain/money';
import { decideRefund, type Refund } from '@order-gateway/domain/orders';
import { noteRule, parseRefund } from '@order-gateway/domain/payments';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { html } from 'hono/html';
import type { OrderRecord } from '../../operations/orders.ts';
import { findPaid } from '../../operations/refunds.ts';
import { findPaymentLink } from '../../operations/stored-orders.ts';
import { fieldOf } from './forms.ts';
import { filled, filledTitle } from './layout.ts';
import { actOn, orderOf, orderPage } from './order.ts';
import { amountOf, orderPath } from './orders.ts';
import { explainAmount, typedAmount } from './typed-amount.ts';
import { failurePage, failureText, type Page, page, type Response, type Visit } from './visit.ts';

const path = '/orders/:service_order_id/refunds';

/** The forms that refund an order. The first one asks for the amount, and the second one repeats it. */
export const refundPages: readonly Page[] = [
  { method: 'GET', path, respond: refundForm },
  { method: 'POST', path, respond: refundOrder },
];

async function refundForm(visit: Visit): Promise<Response> {
  const { form, query } = visit;
  const found = await orderOf(visit);
  if (!found.ok) return failurePage(visit, found.failure);
  const order = found.value;
  const typed = form.get('refund_amount') ?? query.get('refund_amount');
  const planned = await planRefund(visit, order, typed);
  if (typed !== null && planned.ok) return confirmationPage(visit, order, planned.value);
  return planned.ok
    ? amountPage(visit, order, typedForm(planned.value))
    : amountPage(visit, order, typed, planned.failure);
}

/** Returns the refund of the typed amount, or of what can still be refunded. Stores nothing. */
async function planRefund(
  { deps, call }: Visit,
  { order_token }: OrderRecord,
  typed: string | null,
): Promise<Result<Refund, Failure>> {
  const refund_id = randomUUID();
  const parsed = parseRefund({ refund_id, refund_amount: typed === null ? undefined : typedAmount(typed) });
  if (!parsed.ok) return parsed;
  const link = await findPaymentLink(deps.store.findByToken, call, order_token);
  if (!link.ok) return link;
  const paid = await findPaid(deps, call, link.value.order);
  if (!paid.ok) return paid;
  const { order, makesRefunds, nowMs } = paid.value;
  const decided = decideRefund(order, parsed.value, makesRefunds, nowMs);
  if (!decided.ok) return decided;
  const refunds = decided.value.kind === 'reverse' ? decided.value.change.order.reversals.refunds : [];
  const planned = refunds.find((refund) => refund.refundId === refund_id);
  return planned === undefined ? failed({ kind: 'internal' }) : success(planned);
}

/** Returns an amount as a person would type it. */
function typedForm({ amount, currency }: Pick<Refund, 'amount' | 'currency'>): string {
  const text = formatAmount(amount);
  return minorUnitOf(currency) === 0 ? text.replace(/\.00$/, '') : text;
}

function amountPage(visit: Visit, order: OrderRecord, typed: string | null, failure?: Failure): Response {
  const { texts, language, link } = visit;
  const errors = explainAmount(failure, 'refund_amount', typed, texts.amountForm);
  const label = `${texts.refundAmount} (${order.order_currency})`;
  const field = fieldOf({ name: 'refund_amount', label, value: typed, errors, inputMode: 'decimal' });
  const content = html`${failure === undefined || errors.length > 0 ? '' : html`<p class="error" role="alert">${failureText(failure)}</p>`}
<form class="card" action="${link(`${orderPath(order)}/refunds`)}">
${field}
<p class="actions"><button class="button">${texts.continue}</button><a href="${link(orderPath(order))}">${texts.back}</a></p>
</form>`;
  return page(filledTitle(texts.refundTitle, { order: order.order_id }, language), content, failure);
}

/** Shows the refund for confirmation, with an id that makes it safe to send the form twice. */
function confirmationPage(visit: Visit, order: OrderRecord, refund: Refund): Response {
  const { texts, language, form, formToken, link } = visit;
  const { amount, checkoutId } = refund;
  const isSimulated = checkoutId === null;
  const shown = amountOf(visit, { ...order, order_amount: Number(formatAmount(amount)) });
  const values = { amount: shown, order: order.order_id };
  const text = order.payment_method === 'manual' ? texts.confirmManualRefundText : texts.confirmRefundText;
  const content = html`<form class="card" method="post" action="${link(`${orderPath(order)}/refunds`)}">${formToken}
<input type="hidden" name="refund_id" value="${form.get('refund_id') ?? randomUUID()}">
<input type="hidden" name="refund_amount" value="${typedForm(refund)}">
<p>${filled(text, values)}</p>
<p><label>${texts.paymentNote} <input name="refund_note" maxlength="${noteRule.lengthMax}" autocomplete="off" value="${form.get('refund_note') ?? ''}"></label></p>
${isSimulated ? html`<p class="soft">${texts.simulateRefundText}</p>` : ''}
<p class="actions"><button class="button danger">${texts.refundButton.replace('{amount}', () => shown)}</button><a href="${link(orderPath(order))}">${texts.back}</a></p>
</form>`;
  return page(filledTitle(texts.confirmRefundTitle, values, language), content);
}

async function refundOrder(visit: Visit): Promise<Response> {
  const { form, perform } = visit;
  const refund_id = form.get('refund_id') ?? '';
  const refund_amount = form.get('refund_amount') ?? '';
  const refund = { refund_id, refund_amount: typedAmount(refund_amount), refund_note: form.get('refund_note') };
  // The audit log can't store every text, so only a valid refund is recorded.
  const parsed = parseRefund(refund);
  if (!parsed.ok) return orderPage(visit, parsed.failure);
  return actOn(
    visit,
    'order.refund',
    ({ order_id }) => perform(OrderService.method.createRefund, { order_id, ...refund }),
    { refund_id, refund_amount },
  );
}
