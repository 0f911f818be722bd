import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@order-gateway/runtime/logger';
import { readinessCheckEveryMs, readinessCheckTimeoutMs } from '../limits.ts';
import { settledWithin } from '../settled-within.ts';

export type Readiness = ReturnType<typeof createReadiness>;

/**
 * Creates the readiness check, which the health checks of both ports share. It decides whether this process should get
 * new calls. `check` rejects with the reason if orders can't be stored now. Only one check runs at a time, and at most
 * one every `checkEveryMs`. Each change is logged.
 */
export function createReadiness(
  { check, logger }: { readonly check: () => Promise<void>; readonly logger: Logger },
  checkEveryMs = readinessCheckEveryMs,
) {
  const draining = new AbortController();
  let shared: Promise<boolean> | undefined;
  let running: Promise<string | undefined> | undefined;
  let wasReady = true;

  /** Resolves with the reason why orders can't be stored; `undefined` if they can. */
  const runCheck = () => {
    running ??= check()
      .then(() => undefined)
      .catch((error: Error) => error.message)
      .finally(() => {
        running = undefined;
      });
    return running;
  };

  const checkWithTimeout = async () => {
    const outcome = await settledWithin(readinessCheckTimeoutMs, runCheck());
    const reason = outcome === 'deadline_exceeded' ? `no response in ${readinessCheckTimeoutMs} ms` : outcome;
    const isReady = reason === undefined;
    if (isReady && !wasReady) logger.info('ready for orders again');
    if (!isReady && wasReady) logger.error({ reason }, 'not ready for orders');
    wasReady = isReady;
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
    /** Yields the current result of `isReady` and then each change, until the signal aborts. */
    async *watch(signal: AbortSignal): AsyncGenerator<boolean, void> {
      const changing = AbortSignal.any([signal, draining.signal]);
      let last: boolean | undefined;
      while (!signal.aborted) {
        const current = await isReady();
        if (current !== last && !signal.aborted) yield current;
        last = current;
        if (!current && draining.signal.aborted) await endOf(signal);
        else await sleep(checkEveryMs, undefined, { signal: changing, ref: false }).catch(() => {});
      }
    },
    /** Makes the process permanently not ready. */
    drain: () => draining.abort(),
  };
}

/** Resolves when the signal is aborted. */
export function endOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
