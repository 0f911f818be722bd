import { setTimeout as sleep } from 'node:timers/promises';
import { aborted } from 'node:util';
import type { WriteCheckResult } from '@order-gateway/postgres/connections';
import type { Logger } from '@order-gateway/runtime/logger';
import { settledWithin } from '@order-gateway/runtime/settled-within';
import { clockToleranceMs, readinessCheckEveryMs, readinessCheckTimeoutMs } from '../../limits.ts';

export type Readiness = ReturnType<typeof createReadiness>;

/** The result of a check of the database. */
export interface CheckResult extends WriteCheckResult {
  /** The share of the merchants whose orders can be stored, above 0. It is below 1 only on a cluster. */
  readonly servedRatio: number;
}

/**
 * Creates the readiness check, which the health checks of both ports share. It decides whether this process should get
 * new calls. `check` rejects with the reason if no orders can be stored now. Only one check runs at a time, and at most
 * one every `checkEveryMs`. Each change is logged, and so is each change of the share of merchants that are served, and
 * between a right and a wrong clock. A wrong clock does not make the process unready, because the clocks of all
 * processes may be wrong together.
 */
export function createReadiness(
  { check, logger }: { readonly check: () => Promise<CheckResult>; readonly logger: Logger },
  { checkEveryMs = readinessCheckEveryMs, timeoutMs = readinessCheckTimeoutMs } = {},
) {
  const draining = new AbortController();
  let shared: Promise<boolean> | undefined;
  let running: Promise<string | undefined> | undefined;
  let clockOffsetMs: number | undefined;
  let servedRatio = 1;
  const logReady = changeLog(logger, 'ready for orders again', 'not ready for orders');
  const logClock = changeLog(logger, 'the clock agrees with the database again', 'the clock is wrong');
  const logServed = changeLog(logger, 'all merchants are served again', 'some merchants are not served');

  /** Resolves with the reason why orders can't be stored; `undefined` if they can. */
  const runCheck = () => {
    running ??= check()
      .then((result) => {
        clockOffsetMs = Math.round(result.clockOffsetMs);
        servedRatio = result.servedRatio;
        logClock(Math.abs(clockOffsetMs) <= clockToleranceMs, { clock_offset_ms: clockOffsetMs });
        logServed(servedRatio === 1, { merchants_served_ratio: servedRatio });
        return undefined;
      })
      .catch((error: Error) => {
        clockOffsetMs = undefined;
        return error.message;
      })
      .finally(() => {
        running = undefined;
      });
    return running;
  };

  const checkWithTimeout = async () => {
    const outcome = await settledWithin(timeoutMs, runCheck());
    const reason = outcome === 'deadline_exceeded' ? `no response in ${timeoutMs} ms` : outcome;
    const isReady = reason === undefined;
    logReady(isReady, { reason });
    return isReady;
  };

  const forget = () => {
    shared = undefined;
  };

  /** Resolves to false while orders can't be stored, and after `drain`. Concurrent callers share one check. */
  const isReady = async () => {
    if (draining.signal.aborted) return false;
    shared ??= checkWithTimeout().finally(() => setTimeout(forget, checkEveryMs).unref());
    return (await shared) && !draining.signal.aborted;
  };

  return {
    isReady,
    /**
     * Resolves to how far the clock of this process is ahead of the database's, in milliseconds; negative if it is
     * behind, `undefined` if the latest check failed.
     */
    async clockOffsetMs(): Promise<number | undefined> {
      await isReady();
      return clockOffsetMs;
    },
    /** Resolves to the share of the merchants whose orders can be stored; 0 while this process is not ready. */
    servedRatio: async () => ((await isReady()) ? servedRatio : 0),
    /** Yields the current result of `isReady` and then each change, until the signal aborts. */
    async *watch(signal: AbortSignal): AsyncGenerator<boolean, void> {
      const changing = AbortSignal.any([signal, draining.signal]);
      let last: boolean | undefined;
      while (!signal.aborted) {
        const current = await isReady();
        if (current !== last && !signal.aborted) yield current;
        last = current;
        if (!current && draining.signal.aborted) await aborted(signal, signal);
        else await sleep(checkEveryMs, undefined, { signal: changing, ref: false }).catch(() => {});
      }
    },
    /** Makes the process permanently not ready. */
    drain: () => draining.abort(),
  };
}

/**
 * Returns a function that logs each change of a state: `failed` with the fields once it is no longer good, and
 * `recovered` once it is good again. At the start, it is good.
 */
function changeLog(logger: Logger, recovered: string, failed: string) {
  let wasGood = true;
  return (isGood: boolean, fields: object) => {
    if (isGood && !wasGood) logger.info(recovered);
    if (!isGood && wasGood) logger.error(fields, failed);
    wasGood = isGood;
  };
}
