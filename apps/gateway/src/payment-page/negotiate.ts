import type { IncomingHttpHeaders } from 'node:http';
import Negotiator from 'negotiator';
import { pageLanguages } from './localization.ts';

/** Characters of a header that are parsed. Browsers send up to 200; parsing 16 KiB takes 4 ms, and anyone may send it. */
const headerLengthMax = 1_024;

/** Reads Accept and Accept-Language: JSON if preferred, otherwise HTML; the first language if none of ours is accepted. */
export function negotiate({ accept, 'accept-language': acceptLanguage }: IncomingHttpHeaders) {
  const negotiator = new Negotiator({ headers: { accept: cut(accept), 'accept-language': cut(acceptLanguage) } });
  const mediaType = negotiator.mediaType(['text/html', 'application/json']);
  const language = negotiator.language([...pageLanguages]);
  return {
    format: mediaType === 'application/json' ? ('json' as const) : ('html' as const),
    language: pageLanguages.find((known) => known === language) ?? pageLanguages[0],
  };
}

/** Cuts a long header after its last complete entry, as half an entry may mean something else. */
function cut(header: string | undefined): string | undefined {
  if (header === undefined || header.length <= headerLengthMax) return header;
  return header.slice(0, Math.max(0, header.lastIndexOf(',', headerLengthMax)));
}
