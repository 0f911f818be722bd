import Negotiator from 'negotiator';
import { type PageLanguage, pageLanguages } from './localization.ts';

/** The representation that the client prefers. */
export interface Wanted {
  readonly format: 'html' | 'json';
  readonly language: PageLanguage;
}

interface WantedHeaders {
  readonly accept?: string | undefined;
  readonly 'accept-language'?: string | undefined;
}

/** Characters of a header that are parsed. Browsers send up to 200; parsing 16 KiB takes 4 ms, and anyone may send it. */
const headerLengthMax = 1_024;

/** Reads Accept and Accept-Language: JSON if preferred, otherwise HTML; the first language if none of ours is accepted. */
export function negotiate({ accept, 'accept-language': acceptLanguage }: WantedHeaders): Wanted {
  const negotiator = new Negotiator({ headers: { accept: cut(accept), 'accept-language': cut(acceptLanguage) } });
  const mediaType = negotiator.mediaType(['text/html', 'application/json']);
  const language = negotiator.language([...pageLanguages]);
  return {
    format: mediaType === 'application/json' ? 'json' : 'html',
    language: pageLanguages.find((known) => known === language) ?? pageLanguages[0],
  };
}

/** Cuts a long header after its last complete entry, as half an entry may mean something else. */
function cut(header: string | undefined): string | undefined {
  if (header === undefined || header.length <= headerLengthMax) return header;
  return header.slice(0, Math.max(0, header.lastIndexOf(',', headerLengthMax)));
}
