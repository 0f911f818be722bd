import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../logger.ts';

/** How often open orders that passed their end are looked for. Their status shows it at once; this writes it, and the event. */
const sweepEveryMs = 1_000;

/** Stores that orders have passed their end, in the background, until it is stopped. Any number of processes may do so. */
export function startExpirySweep(
  expire: () => Promise<{ readonly expired: number; readonly isDone: boolean }>,
  logger: Logger,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const run = async () => {
    while (!stopping.signal.aborted) {
      const isDone = await expire().then(
        (swept) => swept.isDone,
        (error: unknown) => {
          logger.error({ err: error }, 'expiry sweep failed');
          return true;
        },
      );
      if (isDone) await sleep(sweepEveryMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  };
  const running = run();
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
