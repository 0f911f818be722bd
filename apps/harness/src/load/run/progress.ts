import { formatMs, formatSeconds } from '../../command/text.ts';
import type { Recorder } from './recorder.ts';

/** Where progress is written: a terminal, or anything else. */
export interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** The interval between the lines of a log. */
const logLineEveryMs = 5_000;
/** Rates cover about the last second. Over a shorter time, they would fluctuate. */
const rateOverMs = 1_000;

type Counts = Pick<Recorder, 'sent' | 'done' | 'pending' | 'errors' | 'dropped' | 'latencies'>;

export function createProgress(output: ProgressOutput, counts: Counts, plannedSeconds: number) {
  const samples = [{ atMs: 0, sent: 0, done: 0 }];
  let written = false;
  let lastLineMs = 0;
  const line = (elapsedMs: number) => {
    const before = samples[0] ?? { atMs: 0, sent: 0, done: 0 };
    const seconds = Math.max(0.001, (elapsedMs - before.atMs) / 1_000);
    const rates = [(counts.sent - before.sent) / seconds, (counts.done - before.done) / seconds].map(Math.round);
    return [
      `${formatSeconds(elapsedMs / 1_000)} of ${formatSeconds(plannedSeconds)}`,
      `${rates[0]}/s sent, ${rates[1]}/s done`,
      `${counts.pending} pending`,
      `${counts.errors} errors`,
      `${counts.dropped} dropped`,
      `p50 ${formatMs(counts.latencies.percentile(50))}, p99 ${formatMs(counts.latencies.percentile(99))}`,
    ].join('  ');
  };
  return {
    /** Rewrites the line in a terminal. Otherwise, writes a new line every five seconds. */
    update(elapsedMs: number): void {
      while (samples.length > 1 && elapsedMs - (samples[1]?.atMs ?? 0) >= rateOverMs) samples.shift();
      if (output.isTTY === true) {
        output.write(`\r\u001b[2K${line(elapsedMs)}`);
        written = true;
      } else if (elapsedMs - lastLineMs >= logLineEveryMs) {
        output.write(`${line(elapsedMs)}\n`);
        lastLineMs = elapsedMs;
      }
      samples.push({ atMs: elapsedMs, sent: counts.sent, done: counts.done });
    },
    end(): void {
      if (written) output.write('\n');
    },
  };
}
