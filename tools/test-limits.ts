// Time limits that only a test that hangs should reach. Other tests stay below them even while two runs share half a
// core.

/** How long a test, or a hook, may take. */
export const testLimitMs = 600_000;

/**
 * How long a test waits for a process or a condition. It is shorter so that the failure shows what the test waited for.
 */
export const waitLimitMs = testLimitMs - 60_000;
