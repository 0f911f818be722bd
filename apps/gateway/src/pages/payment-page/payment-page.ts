import { readFileSync } from 'node:fs';
import { type Logo, noBrand } from '@order-gateway/domain/accounts';
import { type BaseUrl, type CheckoutTemplate, checkoutLink, pathPrefixOf } from '@order-gateway/domain/links';
import {
  formatTime,
  type LinkedOrder,
  mayBePaid,
  mayChange,
  type Order,
  type OrderStatus,
  refundedAtOf,
} from '@order-gateway/domain/orders';
import { brandStyle } from '@order-gateway/pages/brand-style';
import { type Html, htmlPage, withValue } from '@order-gateway/pages/html-page';
import {
  languageOf,
  localAmount,
  localDeadline,
  localTime,
  type PageLocale,
  type PageTexts,
  pageTexts,
} from '@order-gateway/pages/localization';
import {
  amountLine,
  backLink,
  languageField,
  languageSwitch,
  legalLinks,
  merchantHeader,
  merchantIcon,
  payTitle,
  supportContacts,
} from '@order-gateway/pages/merchant-page';
import { paymentPageStyle } from '@order-gateway/pages/styles';
import { isLoopbackUrl } from '@order-gateway/runtime/ip-address';
import { html } from 'hono/html';
import { brandResponse, logoPath } from '../../operations/brands.ts';
import { type OrderRecord, orderRecord, type RecordDeps } from '../../operations/orders.ts';
import { returnLink } from '../../operations/payments.ts';
import type { OperationDeps } from '../../operations/service.ts';
import { pageVersion } from '../../watches/page-watch.ts';

/** The script of every page of an order. */
export const pageScript = readFileSync(new URL('./page-script.js', import.meta.url), 'utf8');

// The template escapes every value. A merchant's text has its own <bdi>, which isolates its writing direction.

/**
 * A note of at most this many characters and lines is shown completely: Pay stays on the first screen of a small phone.
 */
const unfoldedNote = { characters: 120, lines: 4 } as const;

/**
 * The number of UTF-16 code units of a folded note that are shown at first. It does not count graphemes, because a
 * single one can be as long as the longest note, 1,000 characters.
 */
const noteBeginningMax = 60;

const graphemes = new Intl.Segmenter();

/**
 * Makes browsers send the real Origin with the page's forms. With the policy in the response header, no-referrer, they
 * would send `null`. Over http on a local network, only Origin shows that a form belongs to the page. The form of the
 * Pay button leads to another site, which gets only the origin and never the address.
 */
const formHeads = {
  get: html`<meta name="referrer" content="same-origin">`,
  post: html`<meta name="referrer" content="strict-origin">`,
} as const;

/** The target of the Pay button. */
export interface CheckoutLink {
  /** The template for the address of the page's Pay button; absent: the page has no button. */
  readonly checkoutTemplate: CheckoutTemplate | undefined;
  /** How the Pay button opens the address: `get` is a link, `post` a form. */
  readonly checkoutMethod: 'get' | 'post';
}

/** The dependencies of the page of an order. */
export interface PaymentPageDeps extends CheckoutLink, RecordDeps, Pick<OperationDeps, 'now' | 'signingSecrets'> {}

const expiresAt = ({ expiresAtMs }: Order) => expiresAtMs;
const paidAt = ({ payment }: Order) => payment?.paidAtMs ?? null;
const cancelledAt = ({ cancelledAtMs }: Order) => cancelledAtMs;

/**
 * For each status, the names of the texts on the page, and the time that it shows. `sentence` is shown if the order
 * cannot be paid on the page and no payment is in progress.
 */
const stateTexts = {
  UN_PAID: { status: null, sentence: 'notPayableHere', timeLabel: 'payWithin', timeOf: expiresAt },
  PAID: { status: 'paid', sentence: 'paidText', timeLabel: 'paidOn', timeOf: paidAt },
  EXPIRED: { status: 'expired', sentence: 'expiredText', timeLabel: 'expiredOn', timeOf: expiresAt },
  CANCELLED: { status: 'cancelled', sentence: 'cancelledText', timeLabel: 'cancelledOn', timeOf: cancelledAt },
} as const satisfies Record<OrderStatus, unknown>;

/** The shipped checkout, which gets a form, offers its own test payments. */
function hasPaymentForm(deps: PaymentPageDeps, link: LinkedOrder): boolean {
  const hasTestPayments = deps.checkoutMethod === 'post' && checkoutUrl(deps, link) !== null;
  return mayBePaid(link) && link.merchant.mode === 'test' && !hasTestPayments;
}

/**
 * Returns the targets of the page's forms as sources of `form-action`, including forms that it can get while it is
 * open; `undefined` if it can have no form. Chromium applies `form-action` to every redirect that follows a form. The
 * form of a test order leads to the return link and to every redirect of the merchant's site, which the gateway can't
 * know. The form of the Pay button leads to the checkout, and from there to the provider's page.
 */
export function formTargets(
  { checkoutTemplate, checkoutMethod }: PaymentPageDeps,
  { order, merchant }: LinkedOrder,
): string | undefined {
  if (order.orderStatus !== 'UN_PAID') return undefined;
  if (merchant.mode === 'test') return "'self' http: https:";
  if (checkoutTemplate === undefined || checkoutMethod === 'get') return undefined;
  return `'self' ${new URL(checkoutLink(checkoutTemplate, order.orderToken)).origin} https:`;
}

/**
 * Returns the checkout's URL for an order, or `null` if there is no checkout, or no payment may start or be continued.
 */
function checkoutUrl({ checkoutTemplate }: PaymentPageDeps, link: LinkedOrder): string | null {
  const isOffered = (mayBePaid(link) || isInProgress(link)) && checkoutTemplate !== undefined;
  return isOffered ? checkoutLink(checkoutTemplate, link.order.orderToken) : null;
}

function isInProgress({ order }: LinkedOrder): boolean {
  return order.lease?.isLive === true;
}

interface LanguageSwitch {
  /** The page's own path, if the page is shown at another path. */
  readonly path?: string;
  /** The customer's choice, which the form repeats. */
  readonly chosen?: PageLocale | undefined;
}

/** Returns the path of an order's page. */
export function pagePath({ baseUrl }: Pick<PaymentPageDeps, 'baseUrl'>, { order }: LinkedOrder): string {
  return `${pathPrefixOf(baseUrl())}/payment/${order.orderToken}`;
}

/** Renders the page of an order: merchant, amount, note, status, and the ways to pay and to return. */
export function paymentPage(
  deps: PaymentPageDeps,
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
  // The order does not expire before a payment in progress ends.
  const [timeLabel, timeMs] = order.lease?.isLive
    ? [texts.waitsUntil, order.lease.endsAtMs]
    : [texts[state.timeLabel], state.timeOf(order)];
  const isOwed = order.refusedPayments.some((payment) => refundedAtOf(order, payment) === null);
  // The sentence about an expired order asks for another payment.
  const isSentenceShown = !isOwed || order.orderStatus !== 'EXPIRED';
  const sentence = isSentenceShown ? html`<p>${withValue(texts[state.sentence], merchant.name)}</p>` : '';
  const payAction = payActionOf(deps, link, texts, amount, chosen);
  const brand = merchant.brand ?? noBrand;
  const { logo } = brand;
  const shownLogo = logo === null ? undefined : { ...logo, url: `${pathPrefixOf(deps.baseUrl())}${logoPath(logo)}` };
  const instructions = mayBePaid(link) ? brand.payment_instructions : null;
  // The part that the customer needs in order to pay is first, so that a small phone shows the button without
  // scrolling.
  const body = html`${merchant.mode === 'test' ? html`<p class="test">${texts.testMode}</p>` : ''}
${notice === undefined ? '' : html`<p class="notice" role="status">${texts[notice]}</p>`}
${merchantHeader(merchant.name, shownLogo, texts)}
<div class="order">
${state.status === null ? '' : html`<p class="status ${state.status}">${texts[state.status]}</p>`}
${amountLine(amount, order_currency)}
${noteOf(order_note, texts)}
${timeMs === null ? '' : timeLine(timeLabel, timeMs, deps.now(), locale)}
</div>
${isOwed ? html`<p class="owed">${withValue(texts.owedText, merchant.name)}</p>` : ''}
<div class="actions">
${isInProgress(link) ? html`<p>${texts.inProgressText}</p>` : ''}
${payAction ?? (isInProgress(link) ? html`<p>${texts.finishText}</p>` : (instructionsOf(instructions, texts) ?? sentence))}
${payAction === undefined ? '' : otherWaysOf(instructions, texts)}
${backLink(returnLink(deps, link), texts)}
</div>
${payAction === undefined ? '' : scanBlock(deps, link, texts)}
<dl class="block">
<div><dt>${texts.orderNumber}</dt><dd><bdi>${order_id}</bdi></dd></div>
${order.payment === null ? '' : html`<div><dt>${texts.paymentId}</dt><dd><bdi>${order.payment.paymentId}</bdi></dd></div>`}
${supportContacts(brand, texts)}
</dl>
${legalLinks(brand, texts)}
${languageSwitch(language, path)}`;
  const shownTitle = payTitle(merchant.name, texts);
  const title = state.status === null ? shownTitle : `${merchant.name}: ${texts[state.status]}`;
  const head = html`${previewOf(deps, brand.logo, shownTitle, merchant.name)}
${merchantIcon(merchant.name, shownLogo, brand.color)}
${formTargets(deps, link) === undefined ? '' : formHeads[deps.checkoutMethod]}`;
  const version = mayChange(order, deps.now()) ? html` data-version="${pageVersion(link)}"` : '';
  const attributes = html` tabindex="-1" data-locale="${locale}" data-page="${path}"${version}`;
  return htmlPage({ language, title, styles: stylesOf(link), script: pageScript, head, attributes, body });
}

/**
 * Returns the style sheets of an order's page. The second one, if any, contains the colours of the merchant's brand.
 */
export function stylesOf({ merchant }: LinkedOrder): readonly string[] {
  const color = merchant.brand?.color;
  return color ? [paymentPageStyle, brandStyle(color)] : [paymentPageStyle];
}

/** Renders the preview that messengers show of the link. Their servers store it, so it does not mention the order. */
function previewOf({ baseUrl }: PaymentPageDeps, logo: Logo | null, title: string, merchantName: string): Html {
  const image =
    logo === null
      ? ''
      : html`
<meta property="og:image" content="${baseUrl()}${logoPath(logo)}">`;
  return html`<meta property="og:title" content="${title}">
<meta property="og:site_name" content="${merchantName}">${image}`;
}

/** Renders how to pay, on a page without a Pay button. */
function instructionsOf(instructions: string | null, texts: PageTexts): Html | undefined {
  if (instructions === null) return undefined;
  return html`<div><p class="label">${texts.howToPay}</p><p class="note"><bdi>${instructions}</bdi></p></div>`;
}

/** Renders how to pay without the Pay button, folded below it. */
function otherWaysOf(instructions: string | null, texts: PageTexts): Html | '' {
  if (instructions === null) return '';
  return html`<details><summary>${texts.otherWays}</summary><p class="note"><bdi>${instructions}</bdi></p></details>`;
}

/** Renders the note. A long note is folded after its beginning, so that the button stays on the screen. */
function noteOf(note: string, texts: PageTexts): Html {
  const label = html`<span class="label">${texts.note}</span>`;
  if ([...note].length <= unfoldedNote.characters && note.split('\n').length <= unfoldedNote.lines) {
    return html`<p>${label} <bdi class="note">${note}</bdi></p>`;
  }
  return html`<details>
<summary>${label} <bdi class="beginning">${beginningOf(note)}…</bdi> <span class="more">${texts.fullNote}</span></summary>
<p class="note"><bdi>${note}</bdi></p>
</details>`;
}

/** Returns the beginning of a note, on a single line. */
function beginningOf(note: string): string {
  let beginning = '';
  for (const { segment } of graphemes.segment(note)) {
    if (beginning.length + segment.length > noteBeginningMax) break;
    beginning += segment;
  }
  return beginning.replaceAll(/\s+/g, ' ').trim();
}

/** Renders the button that opens the checkout and, for a test order, the form that simulates a payment. */
function payActionOf(
  deps: PaymentPageDeps,
  link: LinkedOrder,
  texts: PageTexts,
  amount: string,
  chosen: PageLocale | undefined,
): Html | undefined {
  const url = checkoutUrl(deps, link);
  const payLabel = link.merchant.mode === 'test' ? texts.openCheckout : withValue(texts.pay, amount);
  const label = isInProgress(link) ? texts.continue : payLabel;
  const checkout = url === null ? undefined : checkoutButton(deps, url, label, chosen);
  if (hasPaymentForm(deps, link)) {
    const action = `${pagePath(deps, link)}/simulate${chosen === undefined ? '' : `?lang=${chosen}`}`;
    return html`${checkout ?? ''}
<form class="actions" method="post" action="${action}">
<button class="button${checkout === undefined ? ' main' : ''}" name="outcome" value="pay">${texts.simulate}</button>
<button class="button" name="outcome" value="decline">${texts.simulateDecline}</button>
</form>`;
  }
  return checkout;
}

function checkoutButton(
  { checkoutMethod }: PaymentPageDeps,
  url: string,
  label: string | Html,
  chosen: PageLocale | undefined,
): Html {
  if (checkoutMethod === 'get') return html`<a class="button main" href="${url}">${label}</a>`;
  return html`<form method="post" action="${url}">${languageField(chosen)}<button class="button main">${label}</button></form>`;
}

/**
 * Whether payment pages have a QR code. They have none if the base URL is a loopback address, which a phone cannot
 * open.
 */
export function hasQrCode(baseUrl: BaseUrl): boolean {
  return !isLoopbackUrl(new URL(baseUrl));
}

/**
 * Renders the link as a QR code, for customers who prefer to pay on their phone. On small screens, the style sheet
 * hides the code, and browsers do not load it.
 */
function scanBlock(deps: PaymentPageDeps, link: LinkedOrder, texts: PageTexts): Html | '' {
  if (!hasQrCode(deps.baseUrl())) return '';
  return html`<div class="scan block"><img class="qr" src="${pagePath(deps, link)}/qr.svg" loading="lazy" alt=""><div><p>${texts.scan}</p><button type="button" class="copy" data-copied="${texts.linkCopied}" hidden>${texts.copyLink}</button></div></div>`;
}

/**
 * Renders a time after its label. If the text has placeholders, renders the text with the remaining time and the
 * deadline instead. The script shows the times in the customer's time zone, and counts the remaining time down.
 */
function timeLine(text: string, ms: number, nowMs: number, locale: PageLocale): Html {
  const timeElement = (time: string, dateStyle: string | undefined) => {
    const date = dateStyle === undefined ? '' : html` data-date="${dateStyle}"`;
    return html`<time datetime="${formatTime(ms)}"${date}>${time}</time>`;
  };
  if (!text.includes('{time}')) {
    return html`<p><span class="label">${text}</span> <bdi>${timeElement(localTime(ms, locale), 'long')} UTC</bdi></p>`;
  }
  const { duration, time, dateStyle } = localDeadline(ms, nowMs, locale);
  const remaining = html`<span data-left-ms="${ms - nowMs}">${duration}</span>`;
  return html`<p>${withValue(text, remaining, timeElement(time, dateStyle))}</p>`;
}

/** Renders the page for a failure, by its HTTP status. A mistyped link and one that never existed get the same page. */
export function failurePage(httpStatus: number, locale: PageLocale): Promise<string> {
  const kind = httpStatus === 404 ? 'unknown' : httpStatus < 500 ? 'rejected' : 'trouble';
  const language = languageOf(locale);
  const texts = pageTexts[language];
  const title = texts[`${kind}Title` as const];
  const text = texts[`${kind}Text` as const];
  return htmlPage({ language, title, styles: [paymentPageStyle], body: html`<h1>${title}</h1><p>${text}</p>` });
}

/** The members of the order record that the payment page has as JSON. */
export const sharedMembers = [
  'mode',
  'order_id',
  'order_amount',
  'order_currency',
  'order_note',
  'order_status',
  'created_at',
  'order_expires_at',
  'paid_at',
  'payment_id',
  'cancelled_at',
  'payment_in_progress_until',
  'refused_payments',
] as const satisfies readonly (keyof OrderRecord)[];

/** Returns the content of the payment page as JSON. Like the page, it contains none of the customer's data. */
export function paymentJson(deps: PaymentPageDeps, link: LinkedOrder): string {
  const { order, merchant } = link;
  const record = orderRecord(order, merchant.mode, deps);
  return JSON.stringify({
    merchant_name: merchant.name,
    ...Object.fromEntries(sharedMembers.map((name) => [name, record[name]])),
    return_url: returnLink(deps, link),
    checkout_url: checkoutUrl(deps, link),
    brand: merchant.brand === null ? undefined : brandResponse(merchant.brand, deps.baseUrl()),
  });
}
