import type { CheckoutTemplate } from '@gateway/domain/checkout-link';
import { checkoutLink } from '@gateway/domain/checkout-link';
import { formatAmount } from '@gateway/domain/money';
import { formatCreatedAt, type OrderStatus } from '@gateway/domain/order';
import { hostOf, wayBack } from '@gateway/domain/way-back';
import { html, raw } from 'hono/html';
import type { PaymentLinkFacts } from '../find-order.ts';
import { localAmount, localMoment } from './local-forms.ts';
import { type PageLanguage, type PageTexts, pageTexts } from './page-texts.ts';
import { pageStyle } from './styles.ts';

// Everything between `${` and `}` is escaped by the template, unless it is a piece of template itself. What merchants sent stands
// in elements of its own that isolate it, so that its direction and its overrides end where it ends.

type Html = ReturnType<typeof html>;

/** From this length on an amount is written smaller, so that it stays on one line of a small screen. */
const longAmountMin = 14;

const statusTexts: Readonly<Record<OrderStatus, keyof PageTexts>> = { UN_PAID: 'unpaid' };

/** The page of an order: who is paid, how much, what for, and the ways on and back. */
export async function paymentPage(
  { order, merchantName }: PaymentLinkFacts,
  checkoutTemplate: CheckoutTemplate | undefined,
  language: PageLanguage,
): Promise<string> {
  const texts = pageTexts[language];
  const { order_amount, order_currency, order_id, order_note } = order.fields;
  const amount = localAmount(order_amount, order_currency, language);
  const back = wayBack(order);
  // A symbol such as $ is that of many currencies, so the code stands beside it.
  const code = amount.includes(order_currency) ? '' : html`<span class="code">${order_currency}</span>`;
  const body = html`<header><p class="label">${texts.payTo}</p><h1><bdi>${merchantName}</bdi></h1></header>
<div>
<p class="label">${texts.amount}</p>
<p class="amount${amount.length >= longAmountMin ? ' long' : ''}"><bdi>${amount}</bdi> ${code}</p>
</div>
<dl class="block">
<div><dt>${texts.status}</dt><dd><span class="status">${texts[statusTexts[order.orderStatus]]}</span></dd></div>
<div><dt>${texts.note}</dt><dd class="note"><bdi>${order_note}</bdi></dd></div>
<div><dt>${texts.orderNumber}</dt><dd><bdi>${order_id}</bdi></dd></div>
<div><dt>${texts.created}</dt><dd><time datetime="${formatCreatedAt(order.createdAtMs)}"><bdi>${localMoment(order.createdAtMs, language)}</bdi></time></dd></div>
</dl>
<div class="actions block">
${
  checkoutTemplate === undefined
    ? html`<p>${texts.merchantContinues}</p><a class="button main" href="${back}">${texts.back}</a>`
    : html`<a class="button main" href="${checkoutLink(checkoutTemplate, order.orderToken)}">${texts.pay}</a><a class="button" href="${back}">${texts.back}</a>`
}
<p class="host">${texts.backTo} <bdi>${hostOf(back)}</bdi></p>
</div>`;
  return pageOf(language, `${texts.amount}: ${amount}`, body);
}

/** The page of a link that leads nowhere: the same whether it is mistyped, made up or was never handed out. */
export function unknownLinkPage(language: PageLanguage): Promise<string> {
  const { unknownTitle, unknownText } = pageTexts[language];
  return pageOf(language, unknownTitle, html`<h1>${unknownTitle}</h1><p>${unknownText}</p>`);
}

/** The page for when the order can't be read. */
export function troublePage(language: PageLanguage): Promise<string> {
  const { troubleTitle, troubleText } = pageTexts[language];
  return pageOf(language, troubleTitle, html`<h1>${troubleTitle}</h1><p>${troubleText}</p>`);
}

async function pageOf(language: PageLanguage, title: string, body: Html): Promise<string> {
  const page = await html`<!doctype html>
<html lang="${language}" dir="${pageTexts[language].direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="format-detection" content="telephone=no">
<title>${title}</title>
<style>${raw(pageStyle)}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`;
  return page.toString();
}

/** The facts of the payment page as JSON; like the page, nothing of the customer. */
export function paymentJson(
  { order, merchantName }: PaymentLinkFacts,
  checkoutTemplate: CheckoutTemplate | undefined,
): string {
  const { fields } = order;
  return JSON.stringify({
    merchant_name: merchantName,
    order_id: fields.order_id,
    // At most 15 digits: a double holds them exactly.
    order_amount: Number(formatAmount(fields.order_amount)),
    order_currency: fields.order_currency,
    order_note: fields.order_note,
    order_status: order.orderStatus,
    created_at: formatCreatedAt(order.createdAtMs),
    return_url: wayBack(order),
    checkout_url: checkoutTemplate === undefined ? null : checkoutLink(checkoutTemplate, order.orderToken),
  });
}
