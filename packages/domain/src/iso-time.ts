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
