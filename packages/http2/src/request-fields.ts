import type { DecodedHeaders } from './header-decoder.ts';

/** The header fields of a request: names and values in turn, names in lower case, the protocol's own with their colon. */
export type RequestFields = readonly string[];

/** The value of a field without the blanks around it (RFC 9110, 5.5), those of several of one name joined as one (5.3). */
export function fieldOf(fields: RequestFields, name: string): string | undefined {
  let joined: string | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    if (fields[at] !== name) continue;
    const value = stripped(fields[at + 1] ?? '');
    joined = joined === undefined ? value : `${joined}, ${value}`;
  }
  return joined;
}

/** Not by a pattern, whose time may grow with the square of the number of blanks. */
function stripped(value: string): string {
  let from = 0;
  let to = value.length;
  while (from < to && isBlank(value[from])) from += 1;
  while (to > from && isBlank(value[to - 1])) to -= 1;
  return value.slice(from, to);
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t';
}

/** What a request must have once (RFC 9113, 8.3.1). */
const required = [':method', ':scheme', ':path'];
const pseudoFields: readonly string[] = [...required, ':authority'];

/** What belongs to HTTP/1.1's connections (RFC 9113, 8.2.2). */
const forbidden: readonly string[] = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'];

/**
 * Whether the fields make a request: the protocol's own first, each once, and none that has no meaning here (RFC 9113, 8.3).
 * Those of a CONNECT make none: nothing can be reached through here.
 */
export function isRequest({ fields, isValid }: DecodedHeaders): boolean {
  if (!isValid) return false;
  const seen: string[] = [];
  let hasHost = false;
  let method = '';
  let path = '';
  let isInHead = true;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? '';
    const value = fields[at + 1] ?? '';
    if (name.startsWith(':')) {
      if (!isInHead || !pseudoFields.includes(name) || seen.includes(name)) return false;
      seen.push(name);
      if (name === ':method') method = value;
      else if (name === ':path') path = value;
    } else {
      isInHead = false;
      if (forbidden.includes(name) || (name === 'te' && value.toLowerCase() !== 'trailers')) return false;
      if (name === 'host' && value !== '') hasHost = true;
    }
  }
  if (method === 'CONNECT' || (path === '*' && method !== 'OPTIONS')) return false;
  return required.every((name) => seen.includes(name)) && (hasHost || seen.includes(':authority'));
}

/** Whether these may follow a body. */
export function areTrailers({ fields, isValid }: DecodedHeaders): boolean {
  return (
    isValid && fields.every((text, index) => index % 2 === 1 || !(text.startsWith(':') || forbidden.includes(text)))
  );
}

/** How long the body is told to be; `undefined` where that is not told, NaN where it is told wrongly. */
export function contentLengthOf(fields: RequestFields): number | undefined {
  const told = fieldOf(fields, 'content-length');
  if (told === undefined) return undefined;
  return /^\d{1,15}$/.test(told) ? Number(told) : Number.NaN;
}
