import type { LoadCall } from './calls.ts';

/** The six members of a successful response. */
export interface Acknowledged {
  readonly order_id: string;
  readonly service_order_id: number;
  readonly order_token: string;
  readonly created_at: string;
  readonly order_status: string;
  readonly payment_link: string;
}

/** How a call ended. */
export interface Reply {
  /** `created`, `replayed`, an error code of the gateway, or words for what no gateway should answer. */
  readonly outcome: string;
  readonly acknowledged?: Acknowledged;
}

/** Sends calls over a bounded number of connections, which open on first use. */
export interface Sender {
  /** Resolves within the request timeout. Never rejects: a call without a response has an outcome too. */
  send(call: LoadCall): Promise<Reply>;
  /** Closes all connections at once. */
  close(): void;
}

const noResponse = 'no response: ';

/** The outcome of a call without a response in time. */
export const timedOut = `${noResponse}timeout`;

/** No response arrived: why, as an error code. */
export function failedReply(error: unknown): Reply {
  if (Error.isError(error) && error.name === 'TimeoutError') return { outcome: timedOut };
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const cause = typeof code === 'string' ? code : error instanceof Error ? error.name : 'unknown';
  return { outcome: `${noResponse}${cause}` };
}

/** Whether the gateway responded, rightly or not. */
export function isResponse(outcome: string): boolean {
  return !outcome.startsWith(noResponse);
}
