let latestMs = Number.NaN;
let latestText = '';

/**
 * Formats milliseconds since 1970-01-01 UTC as ISO 8601: `2026-11-20T21:01:42.172Z`. The latest text is cached, because an order
 * needs it several times and orders that arrive together share their millisecond.
 */
export function isoTime(ms: number): string {
  if (ms !== latestMs) {
    // biome-ignore lint/style/noRestrictedGlobals: formats the given time and reads no clock
    latestText = new Date(ms).toISOString();
    latestMs = ms;
  }
  return latestText;
}

/** ISO 8601 with date, time and offset: seconds and their fraction may be absent. */
export const timePattern =
  /^(?:19[7-9]\d|[2-9]\d{3})-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/;

/** The last millisecond of the year 9999: later times have another form, which PostgreSQL does not read. */
export const timeMaxMs = 253_402_300_799_999;

/** The rule of a time, for error messages. */
export const timeMessage = 'must be an ISO 8601 time with an offset, such as 2026-11-20T21:01:42+00:00';

/**
 * Parses a time from 1970 on with its offset, such as `2026-11-20T21:01:42.172+00:00`, to milliseconds since 1970-01-01 UTC;
 * finer digits are dropped. Returns `undefined` for every other text, 30 February included.
 */
export function parseTime(text: string): number | undefined {
  if (!timePattern.test(text)) return undefined;
  try {
    // biome-ignore lint/style/noRestrictedGlobals: parses the given text and reads no clock
    const ms = Temporal.Instant.from(text).epochMilliseconds;
    // With its offset a time of the last day may be one of the year 10000.
    return ms > timeMaxMs ? undefined : ms;
  } catch {
    return undefined;
  }
}
