import { checkoutLink } from '@gateway/domain/checkout-link';
import { formatTime, type Order, type OrderStatus } from '@gateway/domain/order';
import { type LinkedOrder, mayBePaid } from '@gateway/domain/order-store';
import { pathPrefixOf } from '@gateway/domain/payment-link';
import { hostOf } from '@gateway/domain/return-url';
import { html } from 'hono/html';
import type { GatewayDeps } from '../gateway-deps.ts';
import { orderRecord, returnLink } from '../orders/order-response.ts';
import { type Html, htmlPage } from './html-page.ts';
import { localAmount, localTime, type PageLanguage, type PageTexts, pageTexts } from './localization.ts';
import { paymentPageStyle } from './styles.ts';

// The template escapes every value. A merchant's text is in a <bdi> of its own, which isolates its writing direction.

/** From this length on an amount is written smaller, so that it fits one line of a small screen. */
const longAmountMin = 14;

/**
 * Lets browsers send the real Origin with the form, to the gateway only. With the header's policy, no-referrer, they send `null`,
 * and over http to a local network nothing else shows that the form is the page's own.
 */
const formHead = html`<meta name="referrer" content="same-origin">`;

const endOf = ({ expiresAtMs }: Order) => expiresAtMs;
const paidAt = ({ payment }: Order) => payment?.paidAtMs ?? null;
const cancelledAt = ({ cancelledAtMs }: Order) => cancelledAtMs;

/** What the page shows for a state: names of texts, of which `sentence` is for an order with no way to pay here, and a time. */
const stateTexts = {
  UN_PAID: { status: 'unpaid', amount: 'amountToPay', sentence: 'notPayableHere', timeLabel: 'payBy', timeOf: endOf },
  PAID: { status: 'paid', amount: 'amount', sentence: 'paidText', timeLabel: 'paidOn', timeOf: paidAt },
  EXPIRED: { status: 'expired', amount: 'amount', sentence: 'expiredText', timeLabel: 'expiredOn', timeOf: endOf },
  CANCELLED: {
    status: 'cancelled',
    amount: 'amount',
    sentence: 'cancelledText',
    timeLabel: 'cancelledOn',
    timeOf: cancelledAt,
  },
} as const satisfies Record<OrderStatus, unknown>;

export function hasPaymentForm(link: LinkedOrder): boolean {
  return mayBePaid(link) && link.merchant.mode === 'test';
}

/** Where an order is paid; `null` if it can't be paid any more, or not at a checkout. */
function checkoutUrl({ checkoutTemplate }: GatewayDeps, link: LinkedOrder): string | null {
  const isPayable = mayBePaid(link) && checkoutTemplate !== undefined;
  return isPayable ? checkoutLink(checkoutTemplate, link.order.orderToken) : null;
}

/** Renders the page of an order: merchant, amount, note, status, and how to pay and to return. */
export function paymentPage(
  deps: GatewayDeps,
  link: LinkedOrder,
  language: PageLanguage,
  notice?: 'declined',
): Promise<string> {
  const { order, merchant } = link;
  const texts = pageTexts[language];
  const state = stateTexts[order.orderStatus];
  const { order_amount, order_currency, order_id, order_note } = order.fields;
  const amount = localAmount(order_amount, order_currency, language);
  // Many currencies share a symbol such as $, so the code is shown beside it.
  const code = amount.includes(order_currency) ? '' : html`<span class="code">${order_currency}</span>`;
  const timeMs = state.timeOf(order);
  const inProgress = order.lease?.isLive ? html`<p>${texts.inProgressText}</p>` : undefined;
  const payAction = payActionOf(deps, link, withValue(texts.pay, amount), texts);
  const back = returnLink(deps, link);
  const body = html`${merchant.mode === 'test' ? html`<p class="test">${texts.testMode}</p>` : ''}
${notice === undefined ? '' : html`<p class="notice" role="status">${texts[notice]}</p>`}
<header><p class="label">${texts.payTo}</p><h1><bdi>${merchant.name}</bdi></h1></header>
<div>
<p class="label">${texts[state.amount]}</p>
<p class="amount${amount.length >= longAmountMin ? ' long' : ''}"><bdi>${amount}</bdi> ${code}</p>
</div>
<dl class="block">
<div><dt>${texts.status}</dt><dd><span class="status ${state.status}">${texts[state.status]}</span></dd></div>
${timeMs === null ? '' : timeRow(texts[state.timeLabel], timeMs, language)}
<div><dt>${texts.note}</dt><dd class="note"><bdi>${order_note}</bdi></dd></div>
<div><dt>${texts.orderNumber}</dt><dd><bdi>${order_id}</bdi></dd></div>
${timeRow(texts.created, order.createdAtMs, language)}
</dl>
<div class="actions block">
${payAction ?? inProgress ?? html`<p>${withValue(texts[state.sentence], merchant.name)}</p>`}
<a class="button${payAction === undefined ? ' main' : ''}" href="${back}">${texts.back}</a>
<p class="host">${texts.backTo} <bdi>${hostOf(back)}</bdi></p>
</div>`;
  const title = `${texts[state.amount]}: ${amount}`;
  return htmlPage({ language, title, style: paymentPageStyle, head: hasPaymentForm(link) ? formHead : '', body });
}

/** The link to the checkout, and for a test order the form of a simulated payment. */
function payActionOf(deps: GatewayDeps, link: LinkedOrder, payText: Html, texts: PageTexts): Html | undefined {
  const url = checkoutUrl(deps, link);
  const checkout = url === null ? '' : html`<a class="button main" href="${url}">${payText}</a>`;
  if (hasPaymentForm(link)) {
    const action = `${pathPrefixOf(deps.baseUrl())}/payment/${link.order.orderToken}/simulate`;
    const simulateText = url === null ? payText : texts.simulate;
    return html`${checkout}
<form class="actions" method="post" action="${action}">
<button class="button${url === null ? ' main' : ''}" name="outcome" value="pay">${simulateText}</button>
<button class="button" name="outcome" value="decline">${texts.decline}</button>
</form>`;
  }
  return checkout === '' ? undefined : checkout;
}

function timeRow(label: string, ms: number, language: PageLanguage): Html {
  return html`<div><dt>${label}</dt><dd><time datetime="${formatTime(ms)}"><bdi>${localTime(ms, language)}</bdi></time></dd></div>`;
}

/** A text with a value for its one placeholder. */
function withValue(text: string, value: string): Html {
  const [before, after] = text.split(/\{[a-z]+\}/);
  return html`${before}<bdi>${value}</bdi>${after}`;
}

/** Renders the page for a failure, by its HTTP status: the same for a mistyped link and for one that never existed. */
export function failurePage(httpStatus: number, language: PageLanguage): Promise<string> {
  const kind = httpStatus === 404 ? 'unknown' : httpStatus < 500 ? 'rejected' : 'trouble';
  const texts = pageTexts[language];
  const title = texts[`${kind}Title` as const];
  const text = texts[`${kind}Text` as const];
  return htmlPage({ language, title, style: paymentPageStyle, body: html`<h1>${title}</h1><p>${text}</p>` });
}

/** The facts of the payment page as JSON. Like the page, it holds none of the customer's data. */
export function paymentJson(deps: GatewayDeps, link: LinkedOrder): string {
  const { order, merchant } = link;
  const record = orderRecord(order, merchant.mode, deps.baseUrl());
  return JSON.stringify({
    merchant_name: merchant.name,
    mode: record.mode,
    order_id: record.order_id,
    order_amount: record.order_amount,
    order_currency: record.order_currency,
    order_note: record.order_note,
    order_status: record.order_status,
    created_at: record.created_at,
    order_expires_at: record.order_expires_at,
    paid_at: record.paid_at,
    cancelled_at: record.cancelled_at,
    payment_in_progress_until: record.payment_in_progress_until,
    return_url: returnLink(deps, link),
    checkout_url: checkoutUrl(deps, link),
  });
}
