import type { Advance, AdvanceDeps } from './advance.ts';

/** How often due attempts are looked for, and how many are continued at once. */
const sweepEveryMs = 1_000;
const atOnce = 10;

/** Continues due attempts until it is stopped. */
export function startSweep({ store, advance, logger }: AdvanceDeps & { readonly advance: Advance }) {
  let running: Promise<void> = Promise.resolve();
  const sweep = async () => {
    try {
      const due = await store.due(atOnce);
      await Promise.all(due.map(({ attemptId }) => advance(attemptId)));
    } catch (err) {
      logger.warn({ err }, 'the sweep failed');
    }
  };
  let timer: NodeJS.Timeout;
  let isStopped = false;
  const next = () => {
    if (isStopped) return;
    running = sweep().then(() => {
      if (!isStopped) timer = setTimeout(next, sweepEveryMs);
    });
  };
  timer = setTimeout(next, sweepEveryMs);
  return {
    /** Stops it, after the attempts that it is working on. */
    async stop(): Promise<void> {
      isStopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
