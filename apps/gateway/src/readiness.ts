import { setTimeout as sleep } from 'node:timers/promises';
import { readinessCheckEveryMs } from './limits.ts';

/** Whether new calls should come to this process: one answer for the health checks of both ports. */
export interface Readiness {
  /** False while the database does not answer, and from {@link Readiness.drain} on. All who ask share one check. */
  isReady(): Promise<boolean>;
  /** What `isReady` returns now, and then each change of it, until the signal. */
  watch(signal: AbortSignal): AsyncGenerator<boolean, void>;
  /** Makes the process not ready, for good. */
  drain(): void;
}

/** @param check whether the database answers */
export function createReadiness(check: () => Promise<boolean>, checkEveryMs = readinessCheckEveryMs): Readiness {
  const draining = new AbortController();
  let shared: PromiseWithResolvers<boolean> | undefined;

  const isReady = async () => {
    if (draining.signal.aborted) return false;
    if (shared === undefined) {
      const checking = Promise.withResolvers<boolean>();
      shared = checking;
      const forget = () => {
        shared = undefined;
      };
      check().then(checking.resolve, () => checking.resolve(false));
      checking.promise.then(() => setTimeout(forget, checkEveryMs).unref());
    }
    return shared.promise;
  };

  return {
    isReady,
    async *watch(signal) {
      const changing = AbortSignal.any([signal, draining.signal]);
      let last: boolean | undefined;
      while (!signal.aborted) {
        const now = await isReady();
        if (now !== last && !signal.aborted) yield now;
        last = now;
        const isFinal = draining.signal.aborted;
        const pause = isFinal ? endOf(signal) : sleep(checkEveryMs, undefined, { signal: changing, ref: false });
        await pause.catch(() => {});
      }
    },
    drain() {
      draining.abort();
      shared?.resolve(false);
    },
  };
}

/** Resolves when the signal is aborted. */
export function endOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
