import { orderStatuses } from '@gateway/domain/order';
import type { OperationName } from '@gateway/fixtures/operations';
import { z } from 'zod';
import type { LoadCall } from './calls.ts';

/** The six members of the interface. Protobuf's JSON form writes 64-bit integers as texts, so the id is converted. */
const orderSchema = z.object({
  order_id: z.string(),
  service_order_id: z.coerce.number().int(),
  order_token: z.string(),
  created_at: z.string(),
  order_status: z.enum(orderStatuses),
  payment_link: z.string(),
  payment_id: z.string().optional(),
});

/** An order as a response shows it; the response to a payment has neither token nor link. */
export type SeenOrder = z.infer<typeof paidSchema>;

const paidSchema = orderSchema.partial({ order_token: true, created_at: true, payment_link: true });
const single = orderSchema.transform((order) => [order]);

const bodySchemas: Readonly<Partial<Record<OperationName, z.ZodType<SeenOrder[]>>>> = {
  CreateOrder: single,
  GetOrder: single,
  CancelOrder: single,
  RecordPayment: paidSchema.transform((order) => [order]),
  ListOrders: z.object({ orders: z.array(orderSchema).default([]) }).transform(({ orders }) => orders),
};

/** The orders in the body of a success; `undefined` for a body that is not one of this operation. */
export function ordersIn(operation: OperationName, body: unknown): SeenOrder[] | undefined {
  return bodySchemas[operation]?.safeParse(body).data;
}

/** How a call ended. */
export interface Reply {
  /** `created`, `replayed`, `ok`, an error code of the gateway, or a description of what no gateway should send. */
  readonly outcome: string;
  /** The orders in the response to a success. */
  readonly orders?: readonly SeenOrder[];
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
