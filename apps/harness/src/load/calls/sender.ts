import { disputeStatuses, orderStatuses, refundStatuses } from '@order-gateway/domain/orders';
import type { Members, OperationName } from '@order-gateway/fixtures';
import {
  type CallResponse,
  type GatewayAddresses,
  type HttpResponse,
  openClients,
  type RpcResponse,
} from '@order-gateway/fixtures/wire';
import { shownReversalText } from '@order-gateway/order-model/observed';
import { failRefund } from '@order-gateway/postgres/orders/operators';
import { z } from 'zod';
import type { LoadCall } from './call-maker.ts';

const reversalSchema = z.object({
  payment_id: z.string(),
  amount: z.number(),
  currency: z.string(),
  reason: z.string().optional(),
});
const refundSchema = reversalSchema.extend({ refund_id: z.string(), status: z.enum(refundStatuses) });
const disputeSchema = reversalSchema.extend({ dispute_id: z.string(), status: z.enum(disputeStatuses) });

/** The six members that every order has in the API contract, the payments, the refunds and the disputes. */
const orderSchema = z.object({
  order_id: z.string(),
  service_order_id: z.int(),
  order_token: z.string(),
  created_at: z.string(),
  order_status: z.enum(orderStatuses),
  payment_link: z.string(),
  payment_id: z.string().optional(),
  refused_payments: z.array(z.object({ payment_id: z.string() })).optional(),
  refunds: z.array(refundSchema).optional(),
  disputes: z.array(disputeSchema).optional(),
});

/** An order as a response shows it; responses to checkout systems have neither token nor link. */
type SeenOrder = z.infer<typeof checkoutOrderSchema>;

const checkoutOrderSchema = orderSchema.partial({ order_token: true, payment_link: true });
const single = orderSchema.transform((order) => [order]);

const checkoutOrder = z.object({ order: checkoutOrderSchema }).transform(({ order }) => [order]);

const bodySchemas: Readonly<Partial<Record<OperationName, z.ZodType<SeenOrder[]>>>> = {
  CreateOrder: single,
  GetOrder: single,
  CancelOrder: single,
  StartPayment: checkoutOrder,
  EndPayment: checkoutOrder,
  RecordPayment: z
    .object({ order: checkoutOrderSchema, payment_id: z.string() })
    .transform(({ order, payment_id }) => [{ ...order, payment_id }]),
  ListOrders: z.object({ orders: z.array(orderSchema) }).transform(({ orders }) => orders),
};

/** The responses that show a refund or a dispute instead of orders. */
const reversalSchemas: Readonly<Partial<Record<OperationName, z.ZodType<string>>>> = {
  CreateRefund: refundSchema.transform(shownReversalText),
  RecordRefund: z.object({ refund: refundSchema }).transform(({ refund }) => shownReversalText(refund)),
  RecordDispute: z.object({ dispute: disputeSchema }).transform(({ dispute }) => shownReversalText(dispute)),
};

export interface Reply {
  /**
   * `created`, `replayed`, `ok`, an error code of the gateway, or a description of an unexpected or missing response.
   */
  readonly outcome: string;
  readonly orders?: readonly SeenOrder[] | undefined;
  /** The refund or dispute, as the order model describes it. */
  readonly reversal?: string | undefined;
  /** The gateway's id of the request. */
  readonly requestId?: string | undefined;
  /** The end of a payment attempt's lease. */
  readonly leaseEndsAt?: string;
}

/** Sends calls over a bounded number of connections, which open on first use. */
export interface Sender {
  /**
   * Resolves within the request timeout, unless the call is an operator's command. A call without a response has an
   * outcome too.
   */
  send(call: LoadCall): Promise<Reply>;
  /** Closes all connections immediately. */
  close(): void;
}

/**
 * Returns a sender for calls of every protocol, with `connections` connections for each. Operators' commands use the
 * database of the gateway.
 */
export function openSender(gateway: GatewayAddresses, connections: number, databaseUrl?: string): Sender {
  const clients = openClients(gateway, connections);
  return {
    async send(call) {
      const { operation, protocol, request } = call;
      if (operation === 'FailRefund') return failReply(databaseUrl, request);
      return replyOf(operation, await clients[protocol].send({ ...call, operation }));
    },
    close() {
      for (const client of Object.values(clients)) client.close();
    },
  };
}

const noResponse = 'no response: ';

/** The outcome of a call without a response in time. */
export const timedOut = `${noResponse}timeout`;

/** Whether the gateway responded, correctly or not. */
export function isResponse(outcome: string): boolean {
  return !outcome.startsWith(noResponse);
}

/** Ends a pending refund as the command `orders refund-fail` does. */
async function failReply(url: string | undefined, request: Members | undefined): Promise<Reply> {
  if (url === undefined) throw new Error('there is no database for the commands of operators');
  const { order_token, refund_id } = Object(request);
  try {
    const outcome = await failRefund({ url }, order_token, refund_id);
    return { outcome: { failed: 'ok', unknown: 'not_found' }[outcome as string] ?? outcome };
  } catch {
    return { outcome: 'unavailable' };
  }
}

function replyOf(operation: OperationName, response: CallResponse): Reply {
  if (response.kind === 'none') return { outcome: `${noResponse}${response.cause}` };
  const { error, headers } =
    response.kind === 'http'
      ? { error: httpError(response), headers: response.headers }
      : { error: rpcError(response), headers: response.metadata };
  const requestId = headers['x-request-id'];
  if (error !== undefined) return { outcome: error, requestId };
  const orders = bodySchemas[operation]?.safeParse(response.body).data;
  const reversal = reversalSchemas[operation]?.safeParse(response.body).data;
  if (orders === undefined && reversal === undefined) return { outcome: 'an unreadable response', requestId };
  const success = operation === 'CreateOrder' || operation === 'CreateRefund' ? 'created' : 'ok';
  const outcome = headers['idempotent-replayed'] === 'true' ? 'replayed' : success;
  const { lease_ends_at: leaseEndsAt } = Object(response.body);
  return { outcome, orders, reversal, leaseEndsAt, requestId };
}

function httpError({ status, body }: HttpResponse): string | undefined {
  if (status === 200 || status === 201) return undefined;
  const code: unknown = Object(body).code;
  return typeof code === 'string' ? code : `HTTP ${status}`;
}

function rpcError({ code, info }: RpcResponse): string | undefined {
  return code === 'OK' ? undefined : (info?.metadata.code ?? `RPC code ${code}`);
}
