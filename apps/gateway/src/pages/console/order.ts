import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Failure } from '@order-gateway/domain/failure';
import type { Result } from '@order-gateway/domain/result';
import type { Html } from '@order-gateway/pages/html-page';
import { qrCodeSvg } from '@order-gateway/pages/qr-code';
import { html, raw } from 'hono/html';
import type { OrderRecord } from '../../operations/orders.ts';
import { customerOf } from '../../operations/payments.ts';
import { findPaymentLink } from '../../operations/stored-orders.ts';
import { hasQrCode } from '../payment-page/payment-page.ts';
import { simulatedOutcomes, simulatePayment } from '../payment-page/simulate-payment.ts';
import { fieldOf } from './forms.ts';
import { filled, filledTitle } from './layout.ts';
import { timelineOf } from './order-timeline.ts';
import { amountOf, badgeOf, findOrder, orderPath } from './orders.ts';
import { failurePage, failureText, type Page, page, type Response, redirect, type Visit } from './visit.ts';

const path = '/orders/:service_order_id';

/** The page of one order, and its actions. */
export const orderPages: readonly Page[] = [
  { method: 'GET', path, isForAll: true, respond: (visit) => orderPage(visit) },
  { method: 'GET', path: `${path}/cancel`, respond: confirmCancellation },
  { method: 'POST', path: `${path}/cancel`, respond: cancelOrder },
  { method: 'GET', path: `${path}/payments`, respond: (visit) => paymentForm(visit) },
  { method: 'POST', path: `${path}/payments`, respond: recordPayment },
  { method: 'POST', path: `${path}/simulate`, respond: simulate },
  { method: 'POST', path: `${path}/personal-data`, respond: showPersonalData },
];

/** Finds the order of an address. */
export const orderOf = (visit: Visit) => findOrder(visit, { service_order_id: visit.params.service_order_id });

/** Shows an order, and above it why an action on it failed. */
export async function orderPage(visit: Visit, failure?: Failure, personalData?: Html): Promise<Response> {
  const { texts, language, merchant, mayManage, link } = visit;
  const found = await orderOf(visit);
  if (!found.ok) return failurePage(visit, found.failure);
  const order = found.value;
  const isUnpaid = order.order_status === 'UN_PAID';
  const refunded = order.refunded_amount ?? 0;
  const content = html`${failure === undefined ? '' : html`<p class="error" role="alert">${failureText(failure)}</p>`}
<div class="card">
<p class="amount"><bdi>${amountOf(visit, order)}</bdi></p>
<p>${badgeOf(visit, order)}</p>
${refunded === 0 ? '' : html`<p>${filled(texts.refundedAmount, { amount: amountOf(visit, { ...order, order_amount: refunded }) })}</p>`}
${mayManage && order.order_status === 'PAID' && refunded < order.order_amount ? html`<p class="actions"><a class="button" href="${link(`${orderPath(order)}/refunds`)}">${texts.refund}</a></p>` : ''}
${mayManage && (isUnpaid || order.order_status === 'EXPIRED') ? html`<p class="actions"><a class="button" href="${link(`${orderPath(order)}/payments`)}">${texts.markPaid}</a>${isUnpaid ? html`<a class="button danger" href="${link(`${orderPath(order)}/cancel`)}">${texts.cancel}</a>` : ''}</p>` : ''}
</div>
${isUnpaid ? linkBlock(visit, order) : ''}
${mayManage && isUnpaid && merchant.mode === 'test' ? simulateForm(visit, order) : ''}
<div class="card"><h2>${texts.timeline}</h2>
<ol class="timeline">${await timelineOf(visit, order)}</ol>
</div>
<div class="card"><h2>${texts.details}</h2>
<dl>${detailsOf(visit, order)}</dl>
</div>
${mayManage ? (personalData ?? personalDataForm(visit, order)) : ''}`;
  return page(filledTitle(`${texts.order} {order}`, { order: order.order_id }, language), content, failure);
}

/** Renders the payment link, the ways to send it, its QR code, and a message to send to the customer. */
function linkBlock(visit: Visit, { payment_link, ...order }: OrderRecord): Html {
  const { texts, merchant, deps } = visit;
  const message = texts.messageText
    .replace('{amount}', () => amountOf(visit, order))
    .replace('{merchant}', () => merchant.name)
    .replace('{link}', () => payment_link);
  const subject = texts.mailSubject.replace('{merchant}', () => merchant.name);
  const mail = `subject=${encodeURIComponent(subject)}&body=${encodeURIComponent(message)}`;
  return html`<div class="card">
<label>${texts.link} <input readonly value="${payment_link}"></label>
<p class="actions"><button class="button" type="button" data-copy="${payment_link}" data-done="${texts.linkCopied}" hidden>${texts.copyLink}</button>
<a class="button" href="mailto:?${mail}">${texts.sendMail}</a>
<button class="button" type="button" data-share="${message}" hidden>${texts.share}</button></p>
<label>${texts.message} <textarea readonly rows="3">
${message}</textarea></label>
${hasQrCode(deps.baseUrl()) ? html`<p class="soft">${texts.scan}</p><div class="qr">${raw(qrCodeSvg(payment_link))}</div>` : ''}
</div>`;
}

function simulateForm({ texts, link, formToken }: Visit, order: OrderRecord): Html {
  const buttons = simulatedOutcomes.map(
    (outcome) => html`<button class="button" name="outcome" value="${outcome}">${texts[outcome]}</button>`,
  );
  return html`<form class="card" method="post" action="${link(`${orderPath(order)}/simulate`)}">${formToken}
<h2>${texts.simulate}</h2>
<p class="soft">${texts.simulateText}</p>
<p class="actions">${buttons}</p>
</form>`;
}

function detailsOf({ texts }: Visit, order: OrderRecord): Html[] {
  const rows: Row[] = [
    [texts.note, order.order_note, 'note'],
    [texts.serviceOrderId, `${order.service_order_id}`],
    [texts.paymentId, order.payment_id],
    [texts.type, texts[order.service_type]],
    ...Object.entries(order.metadata ?? {}),
  ];
  return rowsOf(rows);
}

type Row = [label: string, value: string | undefined, className?: string];

/** Renders the rows that have a value. */
function rowsOf(rows: readonly Row[]): Html[] {
  return rows
    .filter(([, value]) => value !== undefined)
    .map(
      ([label, value, className = '']) =>
        html`<div><dt><bdi>${label}</bdi></dt><dd class="${className}"><bdi>${value}</bdi></dd></div>`,
    );
}

function personalDataForm({ texts, link, formToken }: Visit, order: OrderRecord): Html {
  return html`<form class="card" method="post" action="${link(`${orderPath(order)}/personal-data#customer`)}">${formToken}
<h2>${texts.personalData}</h2>
<p class="soft">${texts.personalDataText}</p>
<p class="actions"><button class="button">${texts.showPersonalData}</button></p>
</form>`;
}

/** Shows the order with the customer's data and the note of a manual payment, after recording who looks at them. */
async function showPersonalData(visit: Visit): Promise<Response> {
  const { texts, deps, call, merchant } = visit;
  const found = await recordAction(visit, 'order.show_personal_data');
  if (!found.ok) return failurePage(visit, found.failure);
  const { order_token, payment_id = '' } = found.value;
  const payment = { checkoutId: merchant.id, paymentId: payment_id };
  const linked = await findPaymentLink(
    (token, timeoutMs) => deps.store.findForPayment(token, payment, timeoutMs),
    call,
    order_token,
  );
  if (!linked.ok) return failurePage(visit, linked.failure);
  const { order, storedNote } = linked.value;
  const customer = customerOf(order);
  const rows = Object.entries(customer ?? {}).map(([name, value]): Row => [texts[name as keyof typeof texts], value]);
  return orderPage(
    visit,
    undefined,
    html`<div class="card" role="status" id="customer"><h2>${texts.personalData}</h2>
${customer === undefined ? html`<p>${texts.personalDataErased}</p>` : html`<dl>${rowsOf([...rows, [texts.paymentNote, storedNote ?? undefined, 'note']])}</dl>`}
</div>`,
  );
}

async function confirmCancellation(visit: Visit): Promise<Response> {
  const { texts, language, link, formToken } = visit;
  const found = await orderOf(visit);
  if (!found.ok) return failurePage(visit, found.failure);
  const order = found.value;
  const content = html`<form class="card" method="post">${formToken}
<p>${filled(texts.cancelText, { amount: amountOf(visit, order) })}</p>
<p class="actions"><button class="button danger">${texts.cancel}</button><a href="${link(orderPath(order))}">${texts.keep}</a></p>
</form>`;
  return page(filledTitle(texts.cancelTitle, { order: order.order_id }, language), content);
}

function cancelOrder(visit: Visit): Promise<Response> {
  return actOn(visit, 'order.cancel', (order) =>
    visit.perform(OrderService.method.cancelOrder, { order_id: order.order_id }),
  );
}

/**
 * Asks for the payment, which the merchant has received outside any checkout system. Shows what was entered before,
 * with the errors beside their fields.
 */
async function paymentForm(visit: Visit, failure?: Failure): Promise<Response> {
  const { texts, language, form, link, formToken, deps } = visit;
  const found = await orderOf(visit);
  if (!found.ok) return failurePage(visit, found.failure);
  const order = found.value;
  // The API accepts a date instead of a time, so it reports that the time is missing if both are.
  const errors = (failure !== undefined && 'errors' in failure ? failure.errors : []).map((error) =>
    error.field === 'paid_at' ? { ...error, field: 'paid_on' } : error,
  );
  const today = new Date(deps.now()).toISOString().slice(0, 10);
  const field = (name: string, label: string, options: { readonly type?: 'date'; readonly value?: string } = {}) =>
    fieldOf({ name, label, errors, ...options, value: form.get(name) ?? options.value });
  const content = html`<form class="card" method="post">${formToken}
<p>${filled(texts.markPaidText, { amount: amountOf(visit, order) })}</p>
<div class="fields">
${field('payment_id', texts.paymentId)}
${field('paid_on', texts.paidOn, { type: 'date', value: today })}
${field('payment_note', texts.paymentNote)}
</div>
<p class="actions"><button class="button">${texts.markPaid}</button><a href="${link(orderPath(order))}">${texts.back}</a></p>
</form>`;
  return page(filledTitle(texts.markPaidTitle, { order: order.order_id }, language), content, failure);
}

function recordPayment(visit: Visit): Promise<Response> {
  const { form } = visit;
  return actOn(
    visit,
    'order.record_payment',
    ({ order_id }) =>
      visit.perform(OrderService.method.recordManualPayment, {
        order_id,
        payment_id: form.get('payment_id'),
        paid_on: form.get('paid_on'),
        payment_note: form.get('payment_note'),
      }),
    {},
    (failure) => ('errors' in failure ? paymentForm(visit, failure) : orderPage(visit, failure)),
  );
}

function simulate(visit: Visit): Promise<Response> {
  return actOn(visit, 'order.simulate', ({ order_token }) =>
    simulatePayment(visit.deps, visit.call, order_token, visit.form.get('outcome')),
  );
}

/**
 * Records an action in the audit log, performs it on the merchant's order, and shows the order, or the page of the
 * failure.
 */
export async function actOn(
  visit: Visit,
  name: string,
  act: (order: OrderRecord) => Promise<Result<unknown, Failure>>,
  details: Readonly<Record<string, string>> = {},
  // The order is shown with the failure, for example if it has been paid since the page was loaded.
  pageOf = (failure: Failure) => orderPage(visit, failure),
): Promise<Response> {
  const found = await recordAction(visit, name, details);
  if (!found.ok) return failurePage(visit, found.failure);
  const done = await act(found.value);
  return done.ok ? redirect(orderPath(found.value)) : pageOf(done.failure);
}

/** Records an action on the merchant's order in the audit log. Resolves to the order. */
async function recordAction(
  visit: Visit,
  name: string,
  details: Readonly<Record<string, string>> = {},
): Promise<Result<OrderRecord, Failure>> {
  const found = await orderOf(visit);
  if (!found.ok) return found;
  const recorded = await visit.record(name, { order_id: found.value.order_id, ...details });
  return recorded.ok ? found : recorded;
}
