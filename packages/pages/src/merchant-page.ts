import { hostOf } from '@order-gateway/domain/signing';
import { html, raw } from 'hono/html';
import { brandColors, defaultColor } from './brand-style.ts';
import { type Html, withValue } from './html-page.ts';
import { type PageLanguage, type PageLocale, type PageTexts, pageLanguages, pageTexts } from './localization.ts';

// The parts that the pages of a merchant's customers share. The template escapes every value.

/** A merchant's logo, with its size in pixels if it is known. */
export interface ShownLogo {
  readonly url: string;
  readonly width?: number;
  readonly height?: number;
}

/** Where customers find help, and the merchant's terms. */
export interface ShownContacts {
  readonly support_email?: string | null | undefined;
  readonly support_url?: string | null | undefined;
  readonly terms_url?: string | null | undefined;
  readonly privacy_url?: string | null | undefined;
}

/** An amount of at least this length is set in smaller type, so that it fits on one line of a small screen. */
const longAmountMin = 14;

/** Renders an amount, as `localAmount` formats it. */
export function amountLine(amount: string, currency: string): Html {
  // Many currencies share a symbol such as $, so the code is shown beside it.
  const code = amount.includes(currency) ? '' : html`<span class="code">${currency}</span>`;
  return html`<p class="amount${amount.length >= longAmountMin ? ' long' : ''}"><bdi>${amount}</bdi> ${code}</p>`;
}

/**
 * Renders the logo or, if there is none, the monogram. It has no text for screen readers, because the name is beside
 * it.
 */
function merchantPicture(merchantName: string, logo: ShownLogo | undefined): Html {
  if (logo === undefined) return html`<span class="monogram" aria-hidden="true">${monogramOf(merchantName)}</span>`;
  const { url, width, height } = logo;
  const size = width === undefined ? '' : html` width="${width}" height="${height}"`;
  return html`<img class="logo" src="${url}"${size} alt="">`;
}

/** Renders the merchant who is paid. */
export function merchantHeader(merchantName: string, logo: ShownLogo | undefined, texts: PageTexts): Html {
  return html`<header>
${merchantPicture(merchantName, logo)}
<div><p class="label">${texts.payTo}</p><h1><bdi>${merchantName}</bdi></h1></div>
</header>`;
}

/** Renders the link with which the customer returns to the merchant. */
export function backLink(returnUrl: string, texts: PageTexts): Html {
  return html`<a class="back" href="${returnUrl}">${withValue(texts.back, hostOf(returnUrl))}</a>`;
}

/** Returns the title of a page with which a merchant is paid. */
export function payTitle(merchantName: string, texts: PageTexts): string {
  return texts.title.replace('{merchant}', () => merchantName);
}

/** Renders the icon in the browser's tab, which is the logo or the monogram. */
export function merchantIcon(
  merchantName: string,
  logo: ShownLogo | undefined,
  color: string | null | undefined,
): Html {
  if (logo !== undefined) return html`<link rel="icon" href="${logo.url}">`;
  const { accent, onAccent } = brandColors(color ?? defaultColor);
  const svg = html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="${accent}"/><text x="16" y="23" font-family="sans-serif" font-size="20" font-weight="700" text-anchor="middle" fill="${onAccent}">${monogramOf(merchantName)}</text></svg>`;
  return html`<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(String(svg).toWellFormed())}">`;
}

/** Renders the merchant's contacts for questions, as text that is also printed. */
export function supportContacts({ support_email, support_url }: ShownContacts, texts: PageTexts): Html | '' {
  const links = [
    support_email &&
      html`<a href="mailto:${encodeURIComponent(support_email).replace('%40', '@')}"><bdi>${support_email}</bdi></a>`,
    support_url && html`<a href="${support_url}">${texts.help}</a>`,
  ].filter(Boolean);
  if (links.length === 0) return '';
  return html`<div><dt>${texts.questions}</dt><dd class="links">${links}</dd></div>`;
}

/** Renders links to the merchant's terms and privacy policy. */
export function legalLinks({ terms_url, privacy_url }: ShownContacts, texts: PageTexts): Html | '' {
  if (!terms_url && !privacy_url) return '';
  const terms = terms_url ? html`<a href="${terms_url}">${texts.terms}</a>` : '';
  const privacy = privacy_url ? html`<a href="${privacy_url}">${texts.privacy}</a>` : '';
  return html`<p class="legal">${terms}${privacy}</p>`;
}

/**
 * Returns the text that is shown if there is no logo: the first letter or digit of the name, in upper case, or the
 * first character of a name without letters and digits.
 */
function monogramOf(name: string): string {
  const [letter = [...name][0]] = /[\p{L}\p{N}]/u.exec(name) ?? [];
  return letter?.toUpperCase() ?? '';
}

/** Renders the field with which a form keeps the language that the customer chose, if any. */
export function languageField(chosen: PageLocale | undefined): Html | '' {
  return chosen === undefined ? '' : html`<input type="hidden" name="lang" value="${chosen}">`;
}

const languageSwitches = new Map<PageLanguage, Html>();

/**
 * Renders links to the page in each language. Each language is named in that language. With an empty path, the links
 * are relative to the page's own address.
 */
export function languageSwitch(current: PageLanguage, path: string): Html {
  // Relative links are the same for every order.
  if (path !== '') return renderLanguageSwitch(current, path);
  return languageSwitches.getOrInsertComputed(current, () => renderLanguageSwitch(current, path));
}

function renderLanguageSwitch(current: PageLanguage, path: string): Html {
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

/** Writes characters outside ASCII as references, because encoding a page that fits Latin-1 takes half the time. */
function inAscii(text: string): string {
  return text.replaceAll(/[^ -~]/gu, (character) => `&#${character.codePointAt(0)};`);
}
