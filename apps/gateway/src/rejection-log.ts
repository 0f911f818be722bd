import { type FailureCode, failures } from '@gateway/domain/failure';
import type { MerchantId } from '@gateway/domain/merchant';
import type { Logger } from './logger.ts';

/** Counts a rejected call. Returns whether it gets a line of its own; the others share one. */
export type RejectionLog = (code: 'overloaded' | 'rate_limited', id: MerchantId | undefined) => boolean;

/** Lines of one client and code in a second: one for each call would cost more than the rejection itself. */
const linesMax = 10;

const sumEveryMs = 1_000;

/** The level of a call's log line. */
export function levelOf(code: string): 'error' | 'info' {
  return code in failures && failures[code as FailureCode].httpStatus >= 500 ? 'error' : 'info';
}

/** Logs once a second how many more calls of a client were rejected. */
export function createRejectionLog(logger: Logger): RejectionLog {
  const counts = new Map<
    string,
    { readonly code: string; readonly merchant_id: MerchantId | undefined; count: number }
  >();
  const logSums = () => {
    for (const { count, ...rejected } of counts.values()) {
      if (count > linesMax)
        logger[levelOf(rejected.code)]({ ...rejected, count: count - linesMax }, 'more calls rejected');
    }
    counts.clear();
  };
  return (code, id) => {
    if (counts.size === 0) setTimeout(logSums, sumEveryMs).unref();
    const key = `${code} ${id}`;
    const counted = counts.get(key) ?? { code, merchant_id: id, count: 0 };
    counted.count += 1;
    counts.set(key, counted);
    return counted.count <= linesMax;
  };
}
