let latestMs = Number.NaN;
let latestText = '';

/**
 * A moment, in milliseconds since 1970-01-01 UTC, as ISO 8601 has it: `2026-11-20T21:01:42.172Z`. The latest text is kept: it is
 * wanted three times for every order, and orders that arrive together share their millisecond.
 */
export function isoTime(ms: number): string {
  if (ms !== latestMs) {
    latestText = new Date(ms).toISOString();
    latestMs = ms;
  }
  return latestText;
}
