import type { CheckoutTemplate } from '@gateway/domain/checkout-link';
import { checkoutLink } from '@gateway/domain/checkout-link';
import { formatAmount } from '@gateway/domain/money';
import { formatTime, type OrderStatus } from '@gateway/domain/order';
import type { LinkedOrder } from '@gateway/domain/order-store';
import { hostOf, returnUrlFor } from '@gateway/domain/return-url';
import { html } from 'hono/html';
import { type Html, htmlPage } from './html-page.ts';
import { localAmount, localTime, type PageLanguage, type PageTexts, pageTexts } from './localization.ts';
import { paymentPageStyle } from './styles.ts';

// The template escapes every value. A merchant's text is in a <bdi> of its own, which isolates its writing direction.

/** From this length on an amount is written smaller, so that it fits one line of a small screen. */
const longAmountMin = 14;

const statusTexts: Readonly<Record<OrderStatus, keyof PageTexts>> = {
  UN_PAID: 'unpaid',
  PAID: 'unpaid',
  EXPIRED: 'unpaid',
  CANCELLED: 'unpaid',
};

/** Renders the page of an order: merchant, amount, note, status, and the links to pay and to return. */
export function paymentPage(
  { order, merchant: { name: merchantName } }: LinkedOrder,
  checkoutTemplate: CheckoutTemplate | undefined,
  language: PageLanguage,
): Promise<string> {
  const texts = pageTexts[language];
  const { order_amount, order_currency, order_id, order_note } = order.fields;
  const amount = localAmount(order_amount, order_currency, language);
  const returnLink = returnUrlFor(order);
  // Many currencies share a symbol such as $, so the code is shown beside it.
  const code = amount.includes(order_currency) ? '' : html`<span class="code">${order_currency}</span>`;
  const [beforeName, afterName] = texts.notPayableHere.split('{merchant}');
  const body = html`<header><p class="label">${texts.payTo}</p><h1><bdi>${merchantName}</bdi></h1></header>
<div>
<p class="label">${texts.amount}</p>
<p class="amount${amount.length >= longAmountMin ? ' long' : ''}"><bdi>${amount}</bdi> ${code}</p>
</div>
<dl class="block">
<div><dt>${texts.status}</dt><dd><span class="status">${texts[statusTexts[order.orderStatus]]}</span></dd></div>
<div><dt>${texts.note}</dt><dd class="note"><bdi>${order_note}</bdi></dd></div>
<div><dt>${texts.orderNumber}</dt><dd><bdi>${order_id}</bdi></dd></div>
<div><dt>${texts.created}</dt><dd><time datetime="${formatTime(order.createdAtMs)}"><bdi>${localTime(order.createdAtMs, language)}</bdi></time></dd></div>
</dl>
<div class="actions block">
${
  checkoutTemplate === undefined
    ? html`<p>${beforeName}<bdi>${merchantName}</bdi>${afterName}</p><a class="button main" href="${returnLink}">${texts.back}</a>`
    : html`<a class="button main" href="${checkoutLink(checkoutTemplate, order.orderToken)}">${texts.pay}</a><a class="button" href="${returnLink}">${texts.back}</a>`
}
<p class="host">${texts.backTo} <bdi>${hostOf(returnLink)}</bdi></p>
</div>`;
  return pageOf(language, `${texts.amount}: ${amount}`, body);
}

/** Renders the page for an unknown link: the same for a mistyped link and for one that never existed. */
export function unknownLinkPage(language: PageLanguage): Promise<string> {
  const { unknownTitle, unknownText } = pageTexts[language];
  return pageOf(language, unknownTitle, html`<h1>${unknownTitle}</h1><p>${unknownText}</p>`);
}

/** Renders the page for an order that can't be read right now. */
export function troublePage(language: PageLanguage): Promise<string> {
  const { troubleTitle, troubleText } = pageTexts[language];
  return pageOf(language, troubleTitle, html`<h1>${troubleTitle}</h1><p>${troubleText}</p>`);
}

function pageOf(language: PageLanguage, title: string, body: Html): Promise<string> {
  return htmlPage({ language, title, style: paymentPageStyle, body });
}

/** The facts of the payment page as JSON. Like the page, it holds none of the customer's data. */
export function paymentJson(
  { order, merchant: { name: merchantName } }: LinkedOrder,
  checkoutTemplate: CheckoutTemplate | undefined,
): string {
  const { fields } = order;
  return JSON.stringify({
    merchant_name: merchantName,
    order_id: fields.order_id,
    // At most 15 digits, which a double represents exactly.
    order_amount: Number(formatAmount(fields.order_amount)),
    order_currency: fields.order_currency,
    order_note: fields.order_note,
    order_status: order.orderStatus,
    created_at: formatTime(order.createdAtMs),
    return_url: returnUrlFor(order),
    checkout_url: checkoutTemplate === undefined ? null : checkoutLink(checkoutTemplate, order.orderToken),
  });
}
