// Time limits for hanging tests. No machine on which the tests should pass reaches them, not even with two runs at once
// on half a core.

/** How long a test, or a hook, may take. */
export const testLimitMs = 600_000;

/** How long a test waits for a process or a condition. Shorter, so that a failure says what was awaited. */
export const waitLimitMs = testLimitMs - 60_000;
