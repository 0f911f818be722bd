import type { Logger } from './logger.ts';

/** A result is used this long: anyone may ask, and each check is a commit. */
const resultUsedMs = 1_000;

/** A check that takes longer is not ready: an orchestrator's probe waits about as long. */
const checkTimeoutMs = 2_000;

/** What the readiness depends on. */
export interface ReadinessDeps {
  /** Rejects with the reason if orders can't be stored now. */
  readonly check: () => Promise<void>;
  readonly logger: Logger;
  /** Milliseconds from any start. */
  readonly monotonicNow: () => number;
}

/**
 * Whether an order can be stored now. At most one check runs at a time, and concurrent and close questions share it. Logs each
 * change.
 */
export function createReadiness({ check, logger, monotonicNow }: ReadinessDeps): () => Promise<boolean> {
  let running: Promise<string | undefined> | undefined;
  let answer: Promise<boolean> | undefined;
  let usedUntil = 0;
  let isReady = true;

  function reasonOfCheck(): Promise<string | undefined> {
    running ??= check()
      .then(() => undefined)
      .catch((error: Error) => error.message)
      .finally(() => {
        running = undefined;
      });
    return running;
  }

  async function ask(): Promise<boolean> {
    const { promise: late, resolve } = Promise.withResolvers<string>();
    const timer = setTimeout(() => resolve(`no response in ${checkTimeoutMs} ms`), checkTimeoutMs);
    const reason = await Promise.race([reasonOfCheck(), late]);
    clearTimeout(timer);
    if (isReady !== (reason === undefined)) {
      isReady = !isReady;
      if (isReady) logger.error('ready for orders again');
      else logger.error({ reason }, 'not ready for orders');
    }
    usedUntil = monotonicNow() + resultUsedMs;
    return isReady;
  }

  return () => {
    if (answer === undefined || monotonicNow() >= usedUntil) {
      usedUntil = Number.POSITIVE_INFINITY;
      answer = ask();
    }
    return answer;
  };
}
