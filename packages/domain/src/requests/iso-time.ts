import { type BrokenRule, notString } from './field-rules.ts';

/** A time that is only stored and shown: the domain does no arithmetic with it. */
// biome-ignore lint/style/noRestrictedGlobals: a type reads no clock
export type StoredTime = Date;

let latestMs = Number.NaN;
let latestText = '';

/**
 * Formats milliseconds since 1970-01-01 UTC as ISO 8601: `2026-11-20T21:01:42.172Z`. The latest text is cached, because
 * an order needs it several times, and orders that arrive together share a millisecond.
 */
export function isoTime(ms: number): string {
  if (ms !== latestMs) {
    // biome-ignore lint/style/noRestrictedGlobals: formats the given time and reads no clock
    latestText = new Date(ms).toISOString();
    latestMs = ms;
  }
  return latestText;
}

/** RFC 3339, except that the seconds are optional and have at most nine decimals. */
export const timePattern = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/** The last millisecond of the year 9999: ISO 8601 writes later times in a form that PostgreSQL cannot parse. */
export const timeMaxMs = 253_402_300_799_999;

/** The rule of a time, for error messages. */
const timeMessage = 'must be an RFC 3339 time, such as 2026-11-20T21:01:42+00:00; the seconds are optional';

/**
 * Parses an RFC 3339 time of the years 0000 to 9999, such as `2026-11-20T21:01:42.172+00:00`, to milliseconds since
 * 1970-01-01 UTC; digits beyond milliseconds are dropped. Returns `undefined` for every other text, including 30
 * February. Callers must check the range that their rule allows before they use the time, because PostgreSQL cannot
 * parse all of these times.
 */
export function parseTime(text: string): number | undefined {
  if (!timePattern.test(text)) return undefined;
  try {
    // biome-ignore lint/style/noRestrictedGlobals: parses the given text and reads no clock
    return Temporal.Instant.from(text).epochMilliseconds;
  } catch {
    return undefined;
  }
}

/**
 * Returns the time that a field or parameter holds, in milliseconds since 1970-01-01 UTC, or the rule that its value
 * breaks.
 */
export function checkTime(value: unknown): number | BrokenRule {
  if (typeof value !== 'string') return notString;
  return parseTime(value) ?? { code: 'bad_format', message: timeMessage };
}

/** Returns a time of the years 1970 to 9999, as {@link checkTime} does. */
export function checkUnixTime(value: unknown): number | BrokenRule {
  const time = checkTime(value);
  if (typeof time === 'object' || (time >= 0 && time <= timeMaxMs)) return time;
  return { code: 'out_of_range', message: 'must be in the years 1970 to 9999' };
}

/** Returns the beginning of a date such as `2026-11-20` in UTC, as {@link checkTime} does. */
export function checkDate(value: unknown): number | BrokenRule {
  if (typeof value !== 'string') return notString;
  return parseTime(`${value}T00:00Z`) ?? { code: 'bad_format', message: 'must be a date, such as 2026-11-20' };
}
