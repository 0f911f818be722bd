import { brandStyle } from '@order-gateway/pages/brand-style';
import { type Html, htmlPage } from '@order-gateway/pages/html-page';
import {
  languageOf,
  localAmount,
  type PageLanguage,
  type PageLocale,
  type PageTexts,
  pageTexts,
} from '@order-gateway/pages/localization';
import {
  amountLine,
  languageSwitch,
  legalLinks,
  merchantHeader,
  merchantIcon,
  type ShownLogo,
  supportContacts,
} from '@order-gateway/pages/merchant-page';
import { negotiate } from '@order-gateway/pages/negotiate';
import { contentSecurityPolicy, hashSource, paymentPageStyle, privatePageHeaders } from '@order-gateway/pages/styles';
import type { FastifyReply, FastifyRequest } from 'fastify';
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

/** Returns the language that the customer chose, in the address or in a form, and the one to show. */
export function languageFor({ headers, query, body }: FastifyRequest, customerLocale = '') {
  const lang = body instanceof URLSearchParams ? body.get('lang') : null;
  return negotiate(headers, { query: lang === null ? query : { lang }, customerLocale });
}

/** Returns an address in the language that the customer chose. */
export function inLanguage(path: string, chosen: PageLocale | undefined, query: Readonly<Record<string, string>> = {}) {
  const search = new URLSearchParams({ ...query, ...(chosen && { lang: chosen }) });
  return search.size === 0 ? path : `${path}?${search}`;
}

/**
 * Chromium checks each redirect of a form against `form-action`. A provider's page may redirect again, and a test
 * payment redirects to the merchant, whose return URL may have http.
 */
const formAction = "'self' https: http:";

interface Page {
  readonly locale: PageLocale;
  readonly title: string;
  readonly body: Html;
  /** If given, a browser without JavaScript loads this address after this number of seconds. */
  readonly refresh?: { readonly seconds: number; readonly url: string };
  readonly script?: string;
  /** The order whose merchant's brand the page has. */
  readonly order?: CheckoutOrder;
}

/** Sends a page. */
export async function sendPage(
  reply: FastifyReply,
  { locale, title, body, refresh, script, order }: Page,
): Promise<FastifyReply> {
  const language = languageOf(locale);
  const logo = logoOf(order);
  const color = order?.brand?.color;
  const styles = color ? [paymentPageStyle, brandStyle(color)] : [paymentPageStyle];
  // Without the referrer, browsers would send forms with the Origin `null`.
  const head = html`<meta name="referrer" content="same-origin">
${merchantIcon(order?.merchantName ?? '', logo, color)}
${refresh === undefined ? '' : html`<noscript><meta http-equiv="refresh" content="${refresh.seconds};url=${refresh.url}"></noscript>`}`;
  const page = await htmlPage({
    language,
    title,
    styles,
    head,
    body: html`${body}${languageSwitch(language, '')}`,
    ...(script !== undefined && { script }),
  });
  const policy = contentSecurityPolicy({
    styles: styles.map(hashSource),
    formAction,
    imageOrigin: logo === undefined ? 'data:' : new URL(logo.url).origin,
    ...(script !== undefined && { script: hashSource(script) }),
  });
  const headers = { ...privatePageHeaders, 'content-security-policy': policy, 'content-language': language };
  return reply.headers(headers).type('text/html; charset=utf-8').send(page);
}

/** The logo is at the gateway. */
function logoOf(order: CheckoutOrder | undefined): ShownLogo | undefined {
  return order?.brand?.logoUrl ? { url: order.brand.logoUrl } : undefined;
}

/** Sends a page with a title and a sentence: an address without a payment, or an outage. */
export function sendMessage(reply: FastifyReply, message: 'unknown' | 'trouble'): Promise<FastifyReply> {
  const { locale } = languageFor(reply.request);
  const texts = textsOf(locale);
  const [title, text] = [texts[`${message}Title`], texts[`${message}Text`]];
  const body = html`<h1>${title}</h1><p>${text}</p>`;
  return sendPage(reply.code(message === 'unknown' ? 404 : 503), { locale, title, body });
}

/** Renders what to pay and to whom, with the page's own content below. */
export function orderBody(order: CheckoutOrder, locale: PageLocale, content: Html): Html {
  const { merchantName, orderCurrency, orderId, mode, brand } = order;
  const texts = textsOf(locale);
  const contacts = {
    support_email: brand?.supportEmail,
    support_url: brand?.supportUrl,
    terms_url: brand?.termsUrl,
    privacy_url: brand?.privacyUrl,
  };
  return html`${mode === 'test' ? html`<p class="test">${texts.testMode}</p>` : ''}
${merchantHeader(merchantName, logoOf(order), texts)}
<div class="order">${amountLine(localAmount(amountOf(order), orderCurrency, locale), orderCurrency)}</div>
${content}
<dl class="block">
<div><dt>${texts.orderNumber}</dt><dd><bdi>${orderId}</bdi></dd></div>
${supportContacts(contacts, texts)}
</dl>
${legalLinks(contacts, texts)}`;
}
