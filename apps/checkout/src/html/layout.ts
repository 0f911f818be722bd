import { type Html, htmlPage } from '@order-gateway/pages/html-page';
import {
  languageOf,
  localAmount,
  type PageLanguage,
  type PageLocale,
  type PageTexts,
  pageTexts,
} from '@order-gateway/pages/localization';
import { contentSecurityPolicy, hashSource, paymentPageStyle } from '@order-gateway/pages/styles';
import type { FastifyReply } from 'fastify';
import { html } from 'hono/html';
import { amountOf, type CheckoutOrder } from '../gateway/gateway.ts';
import texts from './checkout-texts.json' with { type: 'json' };

/** The texts of the checkout's pages, with those that they share with the payment page. */
export type CheckoutTexts = PageTexts & (typeof texts)['en'];

const ownTexts: Readonly<Record<PageLanguage, (typeof texts)['en']>> = texts;

/** Returns the texts of a locale's language. */
export const textsOf = (locale: PageLocale): CheckoutTexts => {
  const language = languageOf(locale);
  return { ...pageTexts[language], ...ownTexts[language] };
};

/**
 * Chromium checks each redirect of a form against `form-action`. A provider's page may redirect again, and a test payment
 * redirects to the merchant, whose return URL may have http.
 */
const allowed = { styles: [hashSource(paymentPageStyle)], formAction: "'self' https: http:" };

const headers = {
  'content-type': 'text/html; charset=utf-8',
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex, nofollow',
};

interface Page {
  readonly locale: PageLocale;
  readonly title: string;
  readonly body: Html;
  /** If given, the browser loads this address after so many seconds. */
  readonly refresh?: { readonly seconds: number; readonly url: string };
  readonly script?: string;
}

/** Sends a page. */
export async function sendPage(
  reply: FastifyReply,
  { locale, title, body, refresh, script }: Page,
): Promise<FastifyReply> {
  // Without the referrer, browsers would send forms with the Origin `null`.
  const head = html`<meta name="referrer" content="same-origin">
${refresh === undefined ? '' : html`<meta http-equiv="refresh" content="${refresh.seconds};url=${refresh.url}">`}`;
  const language = languageOf(locale);
  const parts = { language, title, styles: [paymentPageStyle], head, body };
  const page = await htmlPage(script === undefined ? parts : { ...parts, script });
  const policy = contentSecurityPolicy(script === undefined ? allowed : { ...allowed, script: hashSource(script) });
  return reply.headers({ ...headers, 'content-security-policy': policy, 'content-language': language }).send(page);
}

/** Sends a page with a title and a sentence: an address without a payment, or an outage. */
export function sendMessage(
  reply: FastifyReply,
  locale: PageLocale,
  message: 'unknown' | 'trouble',
): Promise<FastifyReply> {
  const texts = textsOf(locale);
  const [title, text] = [texts[`${message}Title`], texts[`${message}Text`]];
  const body = html`<h1>${title}</h1><p>${text}</p>`;
  return sendPage(reply.code(message === 'unknown' ? 404 : 503), { locale, title, body });
}

/** Renders what to pay and to whom, with the page's own content below. */
export function orderBody(order: CheckoutOrder, locale: PageLocale, content: Html): Html {
  const { merchantName, orderCurrency, orderId, mode } = order;
  const texts = textsOf(locale);
  const amount = localAmount(amountOf(order), orderCurrency, locale);
  const code = amount.includes(orderCurrency) ? '' : html` <span class="code">${orderCurrency}</span>`;
  return html`${mode === 'test' ? html`<p class="test">${texts.testMode}</p>` : ''}
<header><div><p class="label">${texts.payTo}</p><h1><bdi>${merchantName}</bdi></h1></div></header>
<div class="order"><p class="amount"><bdi>${amount}</bdi>${code}</p></div>
${content}
<dl class="block"><div><dt>${texts.orderNumber}</dt><dd><bdi>${orderId}</bdi></dd></div></dl>`;
}
