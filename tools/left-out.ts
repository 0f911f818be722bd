/**
 * Says whether tests must be skipped because this machine lacks something, and prints one line that says so:
 * `test.skipIf(leftOut('the examples in PHP', hasPhp ? undefined : 'php is not installed'))`.
 */
export function leftOut(tests: string, reason: string | undefined): boolean {
  if (reason !== undefined) process.stderr.write(`\nLEFT OUT: ${tests}: ${reason}\n`);
  return reason !== undefined;
}
