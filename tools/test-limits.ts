// Time limits for tests that hang. A machine on which the tests should pass stays below them, even with two concurrent
// runs on half a core.

/** How long a test, or a hook, may take. */
export const testLimitMs = 600_000;

/**
 * How long a test waits for a process or a condition. It is shorter so that the failure shows what the test waited for.
 */
export const waitLimitMs = testLimitMs - 60_000;
