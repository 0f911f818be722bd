/** A wait that is longer than this is announced. */
const announcedAfterMs = 1_000;

/**
 * If `work` takes longer than a second, prints a line that says what the program waits for. Returns the result of
 * `work`.
 */
export async function announceWait<Value>(awaited: string, work: Promise<Value>): Promise<Value> {
  const timer = setTimeout(() => process.stderr.write(`Waiting for ${awaited}.\n`), announcedAfterMs);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
