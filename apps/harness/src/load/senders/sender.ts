import type { LoadCall } from '../make-calls.ts';

/** What a gateway acknowledged. */
export interface Acknowledged {
  readonly orderId: string;
  readonly serviceOrderId: number;
  readonly orderToken: string;
}

/** What a call came to. */
export interface Reply {
  /** `created`, `replayed`, a failure code of the gateway, or other words for what no gateway should answer. */
  readonly outcome: string;
  readonly acknowledged: Acknowledged | undefined;
}

/** Sends calls to one door over a bounded number of connections. */
export interface Sender {
  /** Gives the answer within the request timeout. Never rejects: a call without an answer is an outcome too. */
  send(call: LoadCall): Promise<Reply>;
  /** Lets go of all connections at once, whatever is under way. */
  close(): void;
}

export function refusedReply(outcome: string): Reply {
  return { outcome, acknowledged: undefined };
}

const noAnswer = 'no answer: ';

/** What a call came to that nobody answered in time. */
export const timedOut = `${noAnswer}timeout`;

/** No answer arrived: why, in the fewest words that tell causes apart. */
export function noReply(error: unknown): Reply {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const told = typeof code === 'string' ? code : error instanceof Error ? error.name : 'unknown';
  return refusedReply(`${noAnswer}${told}`);
}

/** Whether a gateway said anything, right or wrong. */
export function isAnswer(outcome: string): boolean {
  return !outcome.startsWith(noAnswer);
}
