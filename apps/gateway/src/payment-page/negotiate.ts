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

/** JSON where the caller prefers it, else a page: in the caller's language where it is one of ours, else in the first. */
export function negotiate({ accept, 'accept-language': acceptLanguage }: WantedHeaders): Wanted {
  const negotiator = new Negotiator({ headers: { accept, 'accept-language': acceptLanguage } });
  const mediaType = negotiator.mediaType(['text/html', 'application/json']);
  const language = negotiator.language([...pageLanguages]);
  return {
    format: mediaType === 'application/json' ? 'json' : 'html',
    language: pageLanguages.find((known) => known === language) ?? pageLanguages[0],
  };
}
