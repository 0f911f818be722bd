import type { Outcome, Protocol } from './call.ts';
import type { Logger } from './logger.ts';

/** The log line of a call: no header, no body, nothing that a customer typed. */
interface CallLine {
  readonly request_id: string;
  readonly protocol: Protocol;
  readonly merchant_id?: number | undefined;
  readonly checkout_id?: number | undefined;
  readonly code: Outcome;
  readonly duration_ms: number;
}

export interface CallLog {
  /** Writes a call's line, or counts the call where lines of its kind came too often. */
  write(line: CallLine, level: 'info' | 'error'): void;
}

/** Lines of calls that anyone can cause without limit, a second. Above it they are only counted. */
const anonymousLinesMax = 20;

const countEveryMs = 1_000;

/** Successes and bugs are always logged: their number is limited otherwise. */
const alwaysLogged: ReadonlySet<Outcome> = new Set(['ok', 'created', 'replayed', 'internal']);

/**
 * Logs one line per call. Of failed calls without valid credentials the first few each second have lines of their own; the others
 * are one line with their number by code, `calls not logged`.
 */
export function createCallLog(logger: Logger): CallLog {
  let lines = 0;
  let omitted: Partial<Record<Outcome, number>> = {};
  let isCounting = false;

  const startSecond = () => {
    isCounting = true;
    setTimeout(() => {
      if (lines > anonymousLinesMax) logger.info({ calls: omitted }, 'calls not logged');
      lines = 0;
      omitted = {};
      isCounting = false;
    }, countEveryMs).unref();
  };

  return {
    write(line, level) {
      const isAnonymous = line.merchant_id === undefined && line.checkout_id === undefined;
      if (isAnonymous && !alwaysLogged.has(line.code)) {
        if (!isCounting) startSecond();
        lines += 1;
        if (lines > anonymousLinesMax) {
          omitted[line.code] = (omitted[line.code] ?? 0) + 1;
          return;
        }
      }
      logger[level](line, 'call');
    },
  };
}
