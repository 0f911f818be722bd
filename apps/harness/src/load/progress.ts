import type { Totals } from './totals.ts';
import { msTold, secondsTold } from './words.ts';

/** Where progress is written: a terminal, or anything else. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

export interface Progress {
  /** Called as often as there is something new; writes one line over itself in a terminal, a line now and then elsewhere. */
  update(elapsedMs: number): void;
  /** Ends the line. */
  end(): void;
}

/** Lines of a log that is no terminal come this far apart. */
const plainLineEveryMs = 5_000;

export function createProgress(output: ProgressOutput, totals: Totals, plannedSeconds: number): Progress {
  let told = 0;
  let lastMs = 0;
  const before = { sent: 0, done: 0 };
  const lineAt = (elapsedMs: number) => {
    const seconds = Math.max(0.001, (elapsedMs - lastMs) / 1_000);
    const rates = { sent: (totals.sent - before.sent) / seconds, done: (totals.done - before.done) / seconds };
    Object.assign(before, { sent: totals.sent, done: totals.done });
    lastMs = elapsedMs;
    return progressLine(elapsedMs, plannedSeconds, rates, totals);
  };
  return {
    update(elapsedMs) {
      if (output.isTTY === true) {
        output.write(`\r\u001b[2K${lineAt(elapsedMs)}`);
        told += 1;
      } else if (elapsedMs - lastMs >= plainLineEveryMs) output.write(`${lineAt(elapsedMs)}\n`);
    },
    end() {
      if (told > 0) output.write('\n');
    },
  };
}

/** One line of progress: elapsed time, rates, errors and latencies so far. */
export function progressLine(
  elapsedMs: number,
  plannedSeconds: number,
  rates: { readonly sent: number; readonly done: number },
  { errors, dropped, underWay, latencies }: Pick<Totals, 'errors' | 'dropped' | 'underWay' | 'latencies'>,
): string {
  return [
    `${secondsTold(elapsedMs / 1_000)} of ${secondsTold(plannedSeconds)}`,
    `${Math.round(rates.sent)}/s sent, ${Math.round(rates.done)}/s done`,
    `${underWay} under way`,
    `${errors} errors`,
    `${dropped} dropped`,
    `p50 ${msTold(latencies.percentile(50))}, p99 ${msTold(latencies.percentile(99))}`,
  ].join('  ');
}
