// Limits that end what hangs. No machine on which the tests should pass is slow enough to reach them: two runs at once
// on half a core do not.

/** How long a test, or a hook, may take. */
export const testLimitMs = 300_000;

/** How long a test waits for a process or a condition. Shorter, so that a failure says what was awaited. */
export const waitLimitMs = testLimitMs - 60_000;
