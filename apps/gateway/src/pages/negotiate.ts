import Negotiator from 'negotiator';
import { type PageLanguage, pageLanguages } from './page-texts.ts';

/** What the caller can read. */
export interface Wanted {
  readonly format: 'html' | 'json';
  readonly language: PageLanguage;
}

interface WantedHeaders {
  readonly accept?: string | undefined;
  readonly 'accept-language'?: string | undefined;
}

/** The most of a header that is read, in characters: browsers send up to 200. Anyone may ask, and 16 KiB would take 4 ms. */
const headerLengthMax = 1_024;

/** JSON where the caller prefers it, else a page: in the caller's language where it is one of ours, else in the first. */
export function negotiate({ accept, 'accept-language': acceptLanguage }: WantedHeaders): Wanted {
  const negotiator = new Negotiator({
    headers: { accept: beginningOf(accept), 'accept-language': beginningOf(acceptLanguage) },
  });
  const mediaType = negotiator.mediaType(['text/html', 'application/json']);
  const language = negotiator.language([...pageLanguages]);
  return {
    format: mediaType === 'application/json' ? 'json' : 'html',
    language: pageLanguages.find((known) => known === language) ?? pageLanguages[0],
  };
}

/** A header as far as it is read: whole entries only, as half a one may mean something else. */
function beginningOf(header: string | undefined): string | undefined {
  if (header === undefined || header.length <= headerLengthMax) return header;
  return header.slice(0, Math.max(0, header.lastIndexOf(',', headerLengthMax)));
}
