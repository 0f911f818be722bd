import { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import { orderCurrencyCodes } from '@order-gateway/domain/money/currency';
import { formatAmount, NumberText } from '@order-gateway/domain/money/money';
import { type PaymentFieldName, parsePayment } from '@order-gateway/domain/requests/parse-payment';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { rpcClients, rpcErrorOf } from '../helpers/grpc/rpc-clients.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { createOrder } from '../helpers/send-order.ts';

const gateway = useGateway();
const { order_amount, order_currency } = validOrderInput();
let orders = 0;

/** A valid payment of a new order. */
async function newPayment() {
  const { order_token } = await createOrder(gateway, `order-${++orders}`);
  return {
    order_token,
    payment_id: `payment-${orders}`,
    paid_at: new Date().toISOString(),
    order_amount,
    order_currency,
  };
}

/** Expects that a payment is a mismatch only if it is valid, and the order has another amount or currency. */
function expectRejection(code: string | undefined, payment: Partial<Record<PaymentFieldName, unknown>>): void {
  const sent = payment.order_amount;
  const isNumber = typeof sent === 'number' && Number.isFinite(sent);
  const parsed = parsePayment({ ...payment, order_amount: isNumber ? new NumberText(JSON.stringify(sent)) : sent });
  const isMismatch =
    parsed.ok &&
    (formatAmount(parsed.value.amount) !== order_amount.toFixed(2) || parsed.value.currency !== order_currency);
  if (!parsed.ok) expect(code, JSON.stringify(payment)).toBe('invalid_request');
  else expect(code === 'payment_mismatch', JSON.stringify(payment)).toBe(isMismatch);
}

const amount = fc.oneof(
  fc.double(),
  fc.integer({ min: -1, max: 99_999 }).map((hundredths) => hundredths / 100),
  fc.constantFrom(order_amount, Number.NaN, 0, -0, 10.001, 1e13, 5e-324),
);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 140 }).map((sent) => sent.toWellFormed()),
  fc.constantFrom('', ' ', 'usd', 'USDX', 'XXX', '1999-01-01T00:00:00Z', '9999-12-31T23:59:59Z', ...orderCurrencyCodes),
);

test('RecordPayment over Protobuf: only another valid amount or currency is a payment_mismatch', async () => {
  const clients = rpcClients(CheckoutService, gateway);
  const change = fc.oneof(
    amount.map((orderAmount) => ({ orderAmount })),
    ...['orderToken', 'paymentId', 'paidAt', 'orderCurrency'].map((name) => text.map((sent) => ({ [name]: sent }))),
  );
  await fc.assert(
    fc.asyncProperty(change, fc.constantFrom(...clients), async (changed, { client }) => {
      const { order_token, payment_id, paid_at } = await newPayment();
      const message = {
        ...{ orderToken: order_token, paymentId: payment_id, paidAt: paid_at },
        ...{ orderAmount: order_amount, orderCurrency: order_currency },
        ...changed,
      };
      const { reason } = await rpcErrorOf(client.recordPayment(message, { headers: gateway.checkout.headers }));
      expectRejection(reason, {
        ...{ order_token: message.orderToken, payment_id: message.paymentId, paid_at: message.paidAt },
        ...{ order_amount: message.orderAmount, order_currency: message.orderCurrency },
      });
    }),
    { numRuns: 200 },
  );
});

test('RecordPayment over Connect in JSON: no value of a wrong type is a payment_mismatch', async () => {
  const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), amount, text);
  const name = fc.constantFrom('order_token', 'payment_id', 'paid_at', 'order_amount', 'order_currency');
  await fc.assert(
    fc.asyncProperty(name, value, async (field, sent) => {
      const valid = await newPayment();
      const body = JSON.stringify({ ...valid, [field]: sent });
      const response = await fetch(`${gateway.url}/gateway.v1.CheckoutService/RecordPayment`, {
        method: 'POST',
        headers: { ...gateway.checkout.headers, 'content-type': 'application/json' },
        body,
      });
      const { details = [] } = (await response.json()) as { details?: { debug?: { metadata?: { code?: string } } }[] };
      const code = details.flatMap(({ debug }) => debug?.metadata?.code ?? [])[0];
      expectRejection(code, JSON.parse(body));
    }),
    { numRuns: 200 },
  );
});
