import { z } from 'zod';
import type { LoadCall } from './calls.ts';

/** The six members of a successful response. Protobuf's JSON form writes 64-bit integers as texts, so the id is converted. */
export const acknowledgedSchema = z.object({
  order_id: z.string(),
  service_order_id: z.coerce.number().int(),
  order_token: z.string(),
  created_at: z.string(),
  order_status: z.string(),
  payment_link: z.string(),
});

/** How a call ended. */
export interface Reply {
  /** `created`, `replayed`, an error code of the gateway, or a description of what no gateway should send. */
  readonly outcome: string;
  readonly acknowledged?: z.infer<typeof acknowledgedSchema>;
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
