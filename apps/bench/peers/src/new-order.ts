import { randomBytes, randomInt } from 'node:crypto';

/** The fields of a request, under the interface's names. */
export interface OrderFields {
  readonly order_id: string;
  readonly order_amount: number;
  readonly order_currency: string;
  readonly order_note: string;
  readonly service_type: string;
  readonly customer_name: string;
  readonly customer_email: string;
  readonly customer_phone: string;
  readonly customer_address_line1: string;
  readonly customer_address_line2?: string;
  readonly customer_address_city: string;
  readonly customer_address_state: string;
  readonly customer_address_country: string;
  readonly customer_address_postal_code: string;
  readonly order_checksum: string;
  readonly return_url: string;
}

/** The merchant whose rows a peer writes; each contender has one of its own. */
export const merchantId = Number(process.env.MERCHANT_ID);

/** What a service adds to an order. Peers take ids at random: cheaper than any sequence. */
export function newOrder() {
  return {
    merchantId,
    serviceOrderId: randomInt(1, 2 ** 47),
    orderToken: randomBytes(24).toString('base64url'),
    orderStatus: 'UN_PAID',
    createdAt: new Date(),
  };
}

/** The six fields of the interface. */
export function answerOf(order: ReturnType<typeof newOrder>, orderId: string) {
  return {
    service_order_id: order.serviceOrderId,
    created_at: order.createdAt.toISOString().replace('Z', '+00:00'),
    order_id: orderId,
    order_status: order.orderStatus,
    order_token: order.orderToken,
    payment_link: `http://localhost:8080/payment/${order.orderToken}`,
  };
}

/** The one client that a peer knows. It compares in memory: what the gateway pays for its look-ups, peers do not. */
export function knows(clientId: unknown, clientSecret: unknown): boolean {
  return clientId === process.env.CLIENT_ID && clientSecret === process.env.CLIENT_SECRET;
}

/** Tells the bench where to send. */
export function ready(port: number): void {
  process.stdout.write(`${JSON.stringify({ msg: 'ready', port })}\n`);
  process.once('SIGTERM', () => process.exit(0));
}
