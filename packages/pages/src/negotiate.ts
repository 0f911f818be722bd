import type { IncomingHttpHeaders } from 'node:http';
import { canonicalLocale, fieldRules } from '@order-gateway/domain/orders';
import { textError } from '@order-gateway/domain/requests';
import Negotiator from 'negotiator';
import { type PageLocale, pageLanguages, pageLocales } from './localization.ts';

/**
 * The maximum number of characters of a header that are parsed. Browsers send up to 200. A client can send 16 KiB,
 * which would take 4 ms to parse.
 */
const headerLengthMax = 1_024;

interface Negotiated {
  readonly format: 'html' | 'json';
  readonly locale: PageLocale;
  /** The locale that the query selects. */
  readonly chosen: PageLocale | undefined;
}

// Parsing the headers takes half as long as rendering the page, and most browsers send one of a few hundred
// combinations.
const negotiated = new Map<string, Negotiated>();
const negotiatedMax = 1_000;

/**
 * Chooses the format and the language of a page. The format is JSON if `Accept` prefers it, and otherwise HTML. The
 * language is the first of these that the page supports: the customer's choice on the page (`lang` in the query), the
 * order's locale, the browser's languages, and the default.
 */
export function negotiate(
  { accept, 'accept-language': acceptLanguage }: IncomingHttpHeaders,
  { query, customerLocale = '' }: { readonly query?: unknown; readonly customerLocale?: string } = {},
): Negotiated {
  const headers = { accept: cut(accept), 'accept-language': cut(acceptLanguage) };
  const lang = tagIn(Reflect.get(Object(query), 'lang'));
  if (negotiated.size >= negotiatedMax) negotiated.clear();
  return negotiated.getOrInsertComputed(JSON.stringify([headers, lang, customerLocale]), () => {
    const negotiator = new Negotiator({ headers });
    const mediaType = negotiator.mediaType(['text/html', 'application/json']);
    const queryPreference = preferenceFor(lang);
    return {
      format: mediaType === 'application/json' ? 'json' : 'html',
      locale: localeOf([queryPreference, preferenceFor(customerLocale), negotiator]) ?? pageLanguages[0],
      chosen: localeOf([queryPreference]),
    };
  });
}

const preferenceFor = (tag: string) => new Negotiator({ headers: { 'accept-language': tag } });

/** Returns the canonical form of a query's value if it is a language tag, and otherwise an empty text. */
function tagIn(value: unknown): string {
  if (typeof value !== 'string' || textError(fieldRules.customer_locale, value) !== undefined) return '';
  return canonicalLocale(value);
}

/**
 * Returns the first preferred language that the page supports. Adds the region of the first tag that has this language
 * and a region, if the page supports that region.
 */
function localeOf(preferences: readonly Negotiator[]): PageLocale | undefined {
  const [preferred] = preferences.flatMap((preference) => preference.languages([...pageLanguages]));
  const language = pageLanguages.find((supported) => supported === preferred);
  if (language === undefined) return undefined;
  const tags = preferences.flatMap((preference) => preference.languages());
  const regional = tags.find((tag) => tag.toLowerCase().startsWith(`${language}-`));
  return pageLocales.find((supported) => supported.toLowerCase() === regional?.toLowerCase()) ?? language;
}

/** Cuts a long header after its last complete entry, because half an entry may mean something else. */
function cut(header: string | undefined): string | undefined {
  if (header === undefined || header.length <= headerLengthMax) return header;
  return header.slice(0, Math.max(0, header.lastIndexOf(',', headerLengthMax)));
}
