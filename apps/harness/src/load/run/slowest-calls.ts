/** One of the slowest calls of a run. */
export interface SlowCall {
  readonly latency_ms: number;
  /** When it ended, in seconds since the start of the run. */
  readonly second: number;
  readonly operation: string;
  readonly protocol: string;
  readonly outcome: string;
  /** The id under which the gateway logged the call; `undefined` without a response. */
  readonly request_id: string | undefined;
}

const shownMax = 10;

/** Keeps the slowest calls of a run, the slowest first. */
export function createSlowestCalls() {
  const calls: SlowCall[] = [];
  return {
    calls: calls as readonly SlowCall[],
    record(call: SlowCall) {
      if (calls.length === shownMax && call.latency_ms <= (calls.at(-1)?.latency_ms ?? 0)) return;
      const position = calls.findIndex(({ latency_ms }) => latency_ms < call.latency_ms);
      calls.splice(position < 0 ? calls.length : position, 0, call);
      calls.length = Math.min(calls.length, shownMax);
    },
  };
}
