import type { Meter } from '@opentelemetry/api';
import { errorCatalogue } from '@order-gateway/contract/errors';
import type { FailureCode } from '@order-gateway/domain/failure';
import type { Logger } from '@order-gateway/runtime/logger';
import { callLinesPerSecond } from '../limits.ts';
import type { CallLabels } from '../runtime/telemetry/metrics.ts';

/**
 * The fields by which the log lines of calls are counted. No line contains credentials, a body or a customer's text.
 */
interface CallLine {
  readonly merchant_id?: number | undefined;
  readonly checkout_id?: number | undefined;
  readonly code: string;
}

export type CallLog = ReturnType<typeof createCallLog>;

/** Successes and bugs of unauthenticated calls are always logged, because other limits bound their number. */
const alwaysLogged: ReadonlySet<string> = new Set(['ok', 'created', 'replayed', 'accepted', 'internal']);

/** Rejections of authenticated calls before any work. A client can cause any number of them. */
const rejections: ReadonlySet<string> = new Set(['overloaded', 'rate_limited']);

/**
 * Checkout systems make these calls every few seconds, whether or not there is work. One line for each would hide the
 * other lines. The metrics count them.
 */
const polls: ReadonlySet<unknown> = new Set(['ListRefunds']);

/** Whether the gateway, rather than the caller, caused the failure of a call. */
export function isServerError(code: string): boolean {
  return code in errorCatalogue && errorCatalogue[code as FailureCode].httpStatus >= 500;
}

/**
 * Logs one line per call, except for polls that succeed. Of rejected calls and failed unauthenticated calls, only the
 * first few of each account and code are logged each second; one more line counts the rest.
 */
export function createCallLog(logger: Logger) {
  const counts = new Map<string, { readonly line: CallLine; count: number }>();

  const levelOf = (code: string) => (isServerError(code) ? 'error' : 'info');

  const logCounts = () => {
    for (const { line, count } of counts.values()) {
      if (count > callLinesPerSecond)
        logger[levelOf(line.code)]({ ...line, count: count - callLinesPerSecond }, 'calls not logged');
    }
    counts.clear();
  };

  const hasLine = ({ merchant_id, checkout_id, code }: CallLine): boolean => {
    if (counts.size === 0) setTimeout(logCounts, 1_000).unref();
    const key = `${code} ${merchant_id ?? checkout_id}`;
    const counted = counts.get(key) ?? { line: { merchant_id, checkout_id, code }, count: 0 };
    counted.count += 1;
    counts.set(key, counted);
    return counted.count <= callLinesPerSecond;
  };

  return {
    /** Writes a call's line, or counts the call if there were too many lines of its kind. */
    write(line: CallLine & Readonly<Record<string, unknown>>): void {
      if (polls.has(line.operation) && line.code === 'ok') return;
      const isUnauthenticated = line.merchant_id === undefined && line.checkout_id === undefined;
      const isCounted = isUnauthenticated ? !alwaysLogged.has(line.code) : rejections.has(line.code);
      if (!isCounted || hasLine(line)) logger[levelOf(line.code)](line, 'call');
    },
  };
}

/** Counts a call that ended. */
export type RecordCall = ReturnType<typeof callRecorder>;

/** Creates the histogram of the calls in all protocols, and returns the function that records a call in it. */
export function callRecorder(meter: Meter) {
  const durations = meter.createHistogram('order_gateway.call.duration.seconds', {
    description: 'From the headers of a call to the end of its response',
  });
  return (labels: CallLabels, durationMs: number) => durations.record(durationMs / 1_000, labels);
}
