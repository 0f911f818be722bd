import { readFileSync } from 'node:fs';
import { type Brand, type Logo, noBrand } from '@order-gateway/domain/accounts';
import { checkoutLink, pathPrefixOf } from '@order-gateway/domain/links';
import {
  formatTime,
  type LinkedOrder,
  mayBePaid,
  mayChange,
  type Order,
  type OrderStatus,
} from '@order-gateway/domain/orders';
import { hostOf } from '@order-gateway/domain/signing';
import { html, raw } from 'hono/html';
import type { GatewayDeps } from '../gateway-deps.ts';
import { brandResponse, logoPath } from '../operations/brands.ts';
import { orderRecord } from '../operations/orders.ts';
import { returnLink } from '../operations/payments.ts';
import { pageVersion } from '../watches/page-watch.ts';
import { brandColors, brandStyle, defaultColor } from './brand-style.ts';
import { type Html, htmlPage } from './html-page.ts';
import {
  languageOf,
  localAmount,
  localDeadline,
  localTime,
  type PageLanguage,
  type PageLocale,
  type PageTexts,
  pageLanguages,
  pageTexts,
} from './localization.ts';
import { hasQrCode } from './qr-code.ts';
import { paymentPageStyle } from './styles.ts';

/** The script of every page of an order. */
export const pageScript = readFileSync(new URL('./page-script.js', import.meta.url), 'utf8');

// The template escapes every value. A merchant's text has its own <bdi>, which isolates its writing direction.

/** An amount of at least this length is set in smaller type, so that it fits on one line of a small screen. */
const longAmountMin = 14;

/** The number of UTF-16 code units of a note that are shown at first. One grapheme can have all 1,000 characters of a note. */
const noteBeginningMax = 60;

const graphemes = new Intl.Segmenter();

/**
 * Makes browsers send the real Origin with the form, to the gateway only. With the policy in the header, no-referrer,
 * they send `null`. Over http to a local network, nothing but Origin shows that the form is the page's own.
 */
const formHead = html`<meta name="referrer" content="same-origin">`;

const endOf = ({ expiresAtMs }: Order) => expiresAtMs;
const paidAt = ({ payment }: Order) => payment?.paidAtMs ?? null;
const cancelledAt = ({ cancelledAtMs }: Order) => cancelledAtMs;

/**
 * The content of the page for a state: the names of its texts, and its time. `sentence` is shown if the order can't be
 * paid here.
 */
const stateTexts = {
  UN_PAID: { status: null, sentence: 'notPayableHere', timeLabel: 'payWithin', timeOf: endOf },
  PAID: { status: 'paid', sentence: 'paidText', timeLabel: 'paidOn', timeOf: paidAt },
  EXPIRED: { status: 'expired', sentence: 'expiredText', timeLabel: 'expiredOn', timeOf: endOf },
  CANCELLED: { status: 'cancelled', sentence: 'cancelledText', timeLabel: 'cancelledOn', timeOf: cancelledAt },
} as const satisfies Record<OrderStatus, unknown>;

function hasPaymentForm(link: LinkedOrder): boolean {
  return mayBePaid(link) && link.merchant.mode === 'test';
}

/** Whether the page has a form, or can get one while it is open. */
export function mayHaveForm({ order, merchant }: LinkedOrder): boolean {
  return order.orderStatus === 'UN_PAID' && merchant.mode === 'test';
}

/** The URL at which an order is paid; `null` if it can no longer be paid, or not at a checkout. */
function checkoutUrl({ checkoutTemplate }: GatewayDeps, link: LinkedOrder): string | null {
  const isPayable = mayBePaid(link) && checkoutTemplate !== undefined;
  return isPayable ? checkoutLink(checkoutTemplate, link.order.orderToken) : null;
}

interface LanguageSwitch {
  /** The page's own path, if the page is shown at another path. */
  readonly path?: string;
  /** The customer's choice, which the form repeats. */
  readonly chosen?: PageLocale | undefined;
}

/** The path of an order's page. */
export function pagePath({ baseUrl }: Pick<GatewayDeps, 'baseUrl'>, { order }: LinkedOrder): string {
  return `${pathPrefixOf(baseUrl())}/payment/${order.orderToken}`;
}

/** Renders the page of an order: merchant, amount, note, status, and how to pay and to return. */
export function paymentPage(
  deps: GatewayDeps,
  link: LinkedOrder,
  locale: PageLocale,
  notice?: 'declined',
  { path = '', chosen }: LanguageSwitch = {},
): Promise<string> {
  const { order, merchant } = link;
  const language = languageOf(locale);
  const texts = pageTexts[language];
  const state = stateTexts[order.orderStatus];
  const { order_amount, order_currency, order_id, order_note } = order.fields;
  const amount = localAmount(order_amount, order_currency, locale);
  // Many currencies share a symbol such as $, so the code is shown beside it.
  const code = amount.includes(order_currency) ? '' : html`<span class="code">${order_currency}</span>`;
  const isInProgress = order.lease?.isLive === true;
  // The order does not expire before the payment ends.
  const timeMs = isInProgress ? null : state.timeOf(order);
  const inProgress = isInProgress ? html`<p>${texts.inProgressText}</p>` : undefined;
  const payAction = payActionOf(deps, link, texts, chosen);
  const brand = merchant.brand ?? noBrand;
  const back = returnLink(deps, link);
  // What the customer needs in order to pay comes first, so that a small phone shows the button without scrolling.
  const body = html`${merchant.mode === 'test' ? html`<p class="test">${texts.testMode}</p>` : ''}
${notice === undefined ? '' : html`<p class="notice" role="status">${texts[notice]}</p>`}
<header>
${pictureOf(deps, brand.logo, merchant.name)}
<div><p class="label">${texts.payTo}</p><h1><bdi>${merchant.name}</bdi></h1></div>
</header>
<div class="order">
${state.status === null ? '' : html`<p class="status ${state.status}">${texts[state.status]}</p>`}
<p class="amount${amount.length >= longAmountMin ? ' long' : ''}"><bdi>${amount}</bdi> ${code}</p>
${noteOf(order_note, texts)}
${timeMs === null ? '' : timeLine(texts[state.timeLabel], timeMs, deps.now(), locale)}
</div>
<div class="actions">
${payAction ?? inProgress ?? html`<p>${withValue(texts[state.sentence], merchant.name)}</p>`}
<a class="back" href="${back}">${withValue(texts.back, hostOf(back))}</a>
</div>
${payAction === undefined ? '' : scanBlock(deps, link, texts)}
<dl class="block">
<div><dt>${texts.orderNumber}</dt><dd><bdi>${order_id}</bdi></dd></div>
${order.payment === null ? '' : html`<div><dt>${texts.paymentId}</dt><dd><bdi>${order.payment.paymentId}</bdi></dd></div>`}
${supportOf(brand, texts)}
</dl>
${legalLinks(brand, texts)}
${languageSwitchOf(language, path)}`;
  const payTitle = texts.title.replace('{merchant}', () => merchant.name);
  const title = state.status === null ? payTitle : `${merchant.name}: ${texts[state.status]}`;
  const head = html`${previewOf(deps, brand.logo, payTitle, merchant.name)}
${iconOf(deps, brand, merchant.name)}
${mayHaveForm(link) ? formHead : ''}`;
  const version = mayChange(order, deps.now()) ? html` data-version="${pageVersion(link)}"` : '';
  const attributes = html` tabindex="-1" data-locale="${locale}" data-page="${path}"${version}`;
  return htmlPage({ language, title, styles: stylesOf(link), script: pageScript, head, attributes, body });
}

/** The style sheets of an order's page. The second one, if any, has the colours of the merchant's brand. */
export function stylesOf({ merchant }: LinkedOrder): readonly string[] {
  const color = merchant.brand?.color;
  return color ? [paymentPageStyle, brandStyle(color)] : [paymentPageStyle];
}

/** The preview of the link in messengers. Their servers store it, so it contains nothing about the order. */
function previewOf({ baseUrl }: GatewayDeps, logo: Logo | null, title: string, merchantName: string): Html {
  const image =
    logo === null
      ? ''
      : html`
<meta property="og:image" content="${baseUrl()}${logoPath(logo)}">`;
  return html`<meta property="og:title" content="${title}">
<meta property="og:site_name" content="${merchantName}">${image}`;
}

/** The logo or, without one, the monogram. The name is beside it. */
function pictureOf({ baseUrl }: GatewayDeps, logo: Logo | null, merchantName: string): Html {
  if (logo === null) return html`<span class="monogram" aria-hidden="true">${monogramOf(merchantName)}</span>`;
  const { width, height } = logo;
  return html`<img class="logo" src="${pathPrefixOf(baseUrl())}${logoPath(logo)}" width="${width}" height="${height}" alt="">`;
}

/** The icon in the browser's tab: the logo or the monogram. */
function iconOf({ baseUrl }: GatewayDeps, { logo, color }: Brand, merchantName: string): Html {
  if (logo !== null) return html`<link rel="icon" href="${pathPrefixOf(baseUrl())}${logoPath(logo)}">`;
  const { accent, onAccent } = brandColors(color ?? defaultColor);
  const svg = html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="${accent}"/><text x="16" y="23" font-family="sans-serif" font-size="20" font-weight="700" text-anchor="middle" fill="${onAccent}">${monogramOf(merchantName)}</text></svg>`;
  return html`<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(String(svg).toWellFormed())}">`;
}

/** Where the customer can ask questions, as text that prints. */
function supportOf({ support_email, support_url }: Brand, texts: PageTexts): Html | '' {
  const links = [
    support_email &&
      html`<a href="mailto:${encodeURIComponent(support_email).replace('%40', '@')}"><bdi>${support_email}</bdi></a>`,
    support_url && html`<a href="${support_url}">${texts.help}</a>`,
  ].filter((link) => link !== null && link !== '');
  if (links.length === 0) return '';
  return html`<div><dt>${texts.questions}</dt><dd class="links">${links}</dd></div>`;
}

function legalLinks({ terms_url, privacy_url }: Brand, texts: PageTexts): Html | '' {
  if (!terms_url && !privacy_url) return '';
  const terms = terms_url ? html`<a href="${terms_url}">${texts.terms}</a>` : '';
  const privacy = privacy_url ? html`<a href="${privacy_url}">${texts.privacy}</a>` : '';
  return html`<p class="legal">${terms}${privacy}</p>`;
}

/** The first letter or digit of a name, in place of a logo. */
function monogramOf(name: string): string {
  const [letter = [...name][0]] = /[\p{L}\p{N}]/u.exec(name) ?? [];
  return letter?.toUpperCase() ?? '';
}

/** The note. Only the beginning of a long one is shown at first, so that it doesn't push the button off the screen. */
function noteOf(note: string, texts: PageTexts): Html {
  const label = html`<span class="label">${texts.note}</span>`;
  const beginning = beginningOf(note);
  if (beginning === note) return html`<p>${label} <bdi class="note">${note}</bdi></p>`;
  return html`<details>
<summary>${label} <bdi class="beginning">${beginning}…</bdi> <span class="more">${texts.fullNote}</span></summary>
<p class="note"><bdi>${note}</bdi></p>
</details>`;
}

/** The note itself if it is short, otherwise the first of its visible characters, in one line. */
function beginningOf(note: string): string {
  if (note.length <= noteBeginningMax && note.split('\n').length <= 2) return note;
  let beginning = '';
  for (const { segment } of graphemes.segment(note)) {
    if (beginning.length + segment.length > noteBeginningMax) break;
    beginning += segment;
  }
  return beginning.replaceAll(/\s+/g, ' ').trim();
}

/** The link to the checkout, and for a test order the form of a simulated payment. */
function payActionOf(
  deps: GatewayDeps,
  link: LinkedOrder,
  texts: PageTexts,
  chosen: PageLocale | undefined,
): Html | undefined {
  const url = checkoutUrl(deps, link);
  const checkout =
    url === null
      ? undefined
      : html`<a class="button main" href="${url}">${link.merchant.mode === 'test' ? texts.openCheckout : texts.pay}</a>`;
  if (hasPaymentForm(link)) {
    const action = `${pagePath(deps, link)}/simulate${chosen === undefined ? '' : `?lang=${chosen}`}`;
    return html`${checkout ?? ''}
<form class="actions" method="post" action="${action}">
<button class="button${checkout === undefined ? ' main' : ''}" name="outcome" value="pay">${texts.simulate}</button>
<button class="button" name="outcome" value="decline">${texts.simulateDecline}</button>
</form>`;
  }
  return checkout;
}

/**
 * The link, for customers who prefer to pay on their phone. The style sheet hides the code on small screens, and then
 * browsers don't load it.
 */
function scanBlock(deps: GatewayDeps, link: LinkedOrder, texts: PageTexts): Html | '' {
  if (!hasQrCode(deps.baseUrl())) return '';
  return html`<div class="scan block"><img class="qr" src="${pagePath(deps, link)}/qr.svg" loading="lazy" alt=""><div><p>${texts.scan}</p><button type="button" class="copy" data-copied="${texts.linkCopied}" hidden>${texts.copyLink}</button></div></div>`;
}

const languageSwitches = new Map<PageLanguage, Html>();

/** Links to the page in each language, with the language's own name. */
function languageSwitchOf(current: PageLanguage, path: string): Html {
  // At its own path, the page of every order has the same links.
  if (path !== '') return languageSwitch(current, path);
  return languageSwitches.getOrInsertComputed(current, () => languageSwitch(current, path));
}

function languageSwitch(current: PageLanguage, path: string): Html {
  const links = pageLanguages.map((language) => {
    const isCurrent = language === current ? html` aria-current="true"` : '';
    const name = raw(inAscii(pageTexts[language].languageName));
    return html`<li><a href="${path}?lang=${language}" lang="${language}"${isCurrent}>${name}</a></li>`;
  });
  const { language, languageName } = pageTexts[current];
  return html`<details class="languages block">
<summary>${language}: ${languageName}</summary>
<ul>${links}</ul>
</details>`;
}

/** Writes characters outside ASCII as references, because a page within Latin-1 is encoded in half the time. */
function inAscii(text: string): string {
  return text.replaceAll(/[^ -~]/gu, (character) => `&#${character.codePointAt(0)};`);
}

/**
 * A time after its label, or the remaining time if the text has a placeholder for it. The script writes both again, in the
 * customer's time zone.
 */
function timeLine(text: string, ms: number, nowMs: number, locale: PageLocale): Html {
  const at = (time: string, dateStyle: string | undefined) => {
    const date = dateStyle === undefined ? '' : html` data-date="${dateStyle}"`;
    return html`<time datetime="${formatTime(ms)}"${date}>${time}</time>`;
  };
  if (!text.includes('{time}')) {
    return html`<p><span class="label">${text}</span> <bdi>${at(localTime(ms, locale), 'long')} UTC</bdi></p>`;
  }
  const { duration, time, dateStyle } = localDeadline(ms, nowMs, locale);
  const left = html`<span data-left-ms="${ms - nowMs}">${duration}</span>`;
  return html`<p>${withValue(text, left, at(time, dateStyle))}</p>`;
}

/** A text with values for its placeholders, which have the same order in all languages. */
function withValue(text: string, ...values: readonly (string | Html)[]): Html {
  const [start, ...others] = text.split(/\{[a-z]+\}/);
  return html`${start}${others.map((part, index) => html`<bdi>${values[index]}</bdi>${part}`)}`;
}

/** Renders the page for a failure, by its HTTP status: the same for a mistyped link and for one that never existed. */
export function failurePage(httpStatus: number, locale: PageLocale): Promise<string> {
  const kind = httpStatus === 404 ? 'unknown' : httpStatus < 500 ? 'rejected' : 'trouble';
  const language = languageOf(locale);
  const texts = pageTexts[language];
  const title = texts[`${kind}Title` as const];
  const text = texts[`${kind}Text` as const];
  return htmlPage({ language, title, styles: [paymentPageStyle], body: html`<h1>${title}</h1><p>${text}</p>` });
}

/** The content of the payment page as JSON. Like the page, it contains none of the customer's data. */
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
    payment_id: record.payment_id,
    cancelled_at: record.cancelled_at,
    payment_in_progress_until: record.payment_in_progress_until,
    return_url: returnLink(deps, link),
    checkout_url: checkoutUrl(deps, link),
    brand: merchant.brand === null ? undefined : brandResponse(merchant.brand, deps.baseUrl()),
  });
}
