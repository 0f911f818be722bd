import { readFileSync } from 'node:fs';
import { formatTime } from '@order-gateway/domain/orders';
import { type Html, htmlPage } from '@order-gateway/pages/html-page';
import { directionOf, localTime, type PageLanguage } from '@order-gateway/pages/localization';
import { contentSecurityPolicy, hashSource, privatePageHeaders } from '@order-gateway/pages/styles';
import { html } from 'hono/html';
import Negotiator from 'negotiator';
import { consoleStyle } from './console-style.ts';
import texts from './console-texts.json' with { type: 'json' };

const consoleScript = readFileSync(new URL('./console-script.js', import.meta.url), 'utf8');

/** A language of the console, which is also one of the payment page. */
export type ConsoleLanguage = keyof typeof texts & PageLanguage;

/** The texts of the console: labels and complete sentences. Placeholders such as `{name}` are replaced by values. */
export type ConsoleTexts = (typeof texts)['en'];

const languages = Object.keys(texts) as [ConsoleLanguage, ...ConsoleLanguage[]];

/** Returns the console's language that the browser prefers, or the default language if the browser accepts none. */
export function languageFor(acceptLanguage: string | undefined): ConsoleLanguage {
  const header = acceptLanguage?.slice(0, 256);
  const [preferred] = new Negotiator({ headers: { 'accept-language': header } }).languages([...languages]);
  return languages.find((language) => language === preferred) ?? languages[0];
}

export function textsIn(language: ConsoleLanguage): ConsoleTexts {
  return texts[language];
}

/**
 * The headers of every response: no response is cached, framed, indexed or read by other sites, or runs their scripts.
 */
export const consoleHeaders = {
  ...privatePageHeaders,
  'content-security-policy': contentSecurityPolicy({
    styles: [hashSource(consoleStyle)],
    script: hashSource(consoleScript),
    formAction: "'self'",
  }),
  // With this policy, browsers send the real Origin with forms, and send no Referer to other sites.
  'referrer-policy': 'same-origin',
  vary: 'Cookie, Accept-Language',
};

/** Renders a page without a header, for people who need not be signed in. */
export function pageWithoutHeader(language: ConsoleLanguage, title: string, content: Html): Promise<string> {
  return pageOf({ language, title, content, attributes: html` class="narrow"` });
}

interface ConsolePage {
  readonly language: ConsoleLanguage;
  readonly title: string;
  /** The bar above the content. */
  readonly header: Html;
  readonly content: Html;
}

/** Renders a page with a header, for people who are signed in. */
export function consolePage(page: ConsolePage): Promise<string> {
  return pageOf({ ...page, attributes: html` id="content" tabindex="-1"` });
}

type PageParts = Omit<ConsolePage, 'header'> & { readonly header?: Html; readonly attributes: Html };

function pageOf({ title, content, ...parts }: PageParts): Promise<string> {
  const body = html`<h1>${title}</h1>
${content}`;
  const documentTitle = `${title} | ${textsIn(parts.language).console}`;
  return htmlPage({ ...parts, title: documentTitle, styles: [consoleStyle], script: consoleScript, body });
}

/** Renders a time in UTC. The script shows it in the reader's time zone. */
export function timeOf(ms: number, language: ConsoleLanguage): Html {
  return html`<time datetime="${formatTime(ms)}">${localTime(ms, language, 'medium')} UTC</time>`;
}

/** Renders a text with its placeholders replaced by values, which the template escapes. */
export function filled(text: string, values: Readonly<Record<string, string | number | Html>>): Html {
  const parts = text.split(/\{([a-z]+)\}/);
  return html`${parts.map((part, index) => (index % 2 === 0 ? part : html`<bdi>${values[part] ?? ''}</bdi>`))}`;
}

/**
 * Fills the placeholders of a title. A title has no markup, so U+2068 and U+2069 isolate the direction of the values in
 * a language that is written from right to left: otherwise, the ID `2026-1001` would be shown as `1001-2026`.
 */
export function filledTitle(text: string, values: Readonly<Record<string, string>>, language: ConsoleLanguage): string {
  const isRightToLeft = directionOf(language) === 'rtl';
  return text.replaceAll(/\{([a-z]+)\}/g, (_, name: string) => {
    const value = values[name] ?? '';
    return isRightToLeft ? `\u2068${value}\u2069` : value;
  });
}
