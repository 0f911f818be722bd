import type { IncomingHttpHeaders } from 'node:http';
import Negotiator from 'negotiator';
import { type PageLanguage, type PageLocale, pageLanguages, pageLocales } from './localization.ts';

/** Characters of a header that are parsed. Browsers send up to 200; parsing 16 KiB takes 4 ms, and anyone may send it. */
const headerLengthMax = 1_024;

/**
 * Reads Accept and Accept-Language: JSON if preferred, otherwise HTML; the first language if none of ours is accepted. `lang` of
 * the query, which the customer chooses on the page, comes before the browser's languages.
 */
export function negotiate({ accept, 'accept-language': acceptLanguage }: IncomingHttpHeaders, query?: unknown) {
  const negotiator = new Negotiator({ headers: { accept: cut(accept), 'accept-language': cut(acceptLanguage) } });
  const mediaType = negotiator.mediaType(['text/html', 'application/json']);
  const chosen = pageLanguages.find((known) => known === Reflect.get(Object(query), 'lang'));
  return {
    format: mediaType === 'application/json' ? ('json' as const) : ('html' as const),
    locale: localeOf(negotiator, chosen),
    chosen,
  };
}

/** The chosen or preferred language, with the region of its first accepted tag that has one. */
function localeOf(negotiator: Negotiator, chosen: PageLanguage | undefined): PageLocale {
  const accepted = chosen ?? negotiator.language([...pageLanguages]);
  const language = pageLanguages.find((known) => known === accepted) ?? pageLanguages[0];
  const regional = negotiator.languages().find((tag) => tag.toLowerCase().startsWith(`${language}-`));
  return pageLocales.find((known) => known.toLowerCase() === regional?.toLowerCase()) ?? language;
}

/** Cuts a long header after its last complete entry, as half an entry may mean something else. */
function cut(header: string | undefined): string | undefined {
  if (header === undefined || header.length <= headerLengthMax) return header;
  return header.slice(0, Math.max(0, header.lastIndexOf(',', headerLengthMax)));
}
