// Takes the payment of an order as a checkout system does, with Connect's client. Packages: @connectrpc/connect,
// @connectrpc/connect-node, @bufbuild/protobuf, and @order-gateway/contract (see README.md).
// ORDER_TOKEN is the last part of the payment link. Set PAID_AMOUNT to see how a payment of another amount is refused.
// Usage: GRPC_ADDRESS=127.0.0.1:9090 CLIENT_ID=chk_... CLIENT_SECRET=sk_... ORDER_TOKEN=... PAYMENT_ID=pay-1 node checkout-connect.mjs
import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import { ErrorInfoSchema } from '@order-gateway/contract/google/rpc/error_details_pb';

const { GRPC_ADDRESS, CLIENT_ID, CLIENT_SECRET, ORDER_TOKEN: orderToken, PAYMENT_ID, PAID_AMOUNT } = process.env;

const client = createClient(CheckoutService, createGrpcTransport({ baseUrl: `http://${GRPC_ADDRESS}` }));
const options = { headers: { 'x-client-id': CLIENT_ID, 'x-client-secret': CLIENT_SECRET }, timeoutMs: 5_000 };

function codeOf(error) {
  return ConnectError.from(error).findDetails(ErrorInfoSchema)[0]?.metadata.code ?? String(error);
}

/** Repeats a call while its outcome is unknown, for about half a minute. */
async function repeat(call) {
  for (let waitMs = 500; ; waitMs *= 2) {
    try {
      return await call();
    } catch (error) {
      const isUnknown = [Code.Unavailable, Code.DeadlineExceeded].includes(ConnectError.from(error).code);
      if (!isUnknown || waitMs > 16_000) throw error;
      await sleep(waitMs);
    }
  }
}

/**
 * Claims the order before money is taken. Until the claim ends, other attempts and cancellations get
 * payment_in_progress.
 */
async function start() {
  try {
    const attempt = { orderToken, attemptId: PAYMENT_ID };
    return (await repeat(() => client.startPayment(attempt, options))).order;
  } catch (error) {
    const code = codeOf(error);
    // RetryInfo says when the other attempt's claim ends.
    if (code === 'payment_in_progress')
      throw new Error('Another payment of the order is in progress. Try again later.');
    throw new Error(`The order can't be paid: ${code}`);
  }
}

async function record(payment) {
  try {
    return (await repeat(() => client.recordPayment(payment, options))).order;
  } catch (error) {
    const code = codeOf(error);
    const isRefused = ['order_already_paid', 'order_cancelled', 'order_expired', 'payment_mismatch'].includes(code);
    throw new Error(`${isRefused ? 'Refund the payment' : 'Keep the money, and find out why'}: ${code}`);
  }
}

try {
  const order = await start();
  // Here your system takes the money. If the customer declines or leaves, call endPayment with the attemptId instead.
  const paid = await record({
    orderToken,
    attemptId: PAYMENT_ID,
    paymentId: PAYMENT_ID,
    paidAt: new Date().toISOString(),
    orderAmount: Number(PAID_AMOUNT ?? order.orderAmount),
    orderCurrency: order.orderCurrency,
  });
  process.stdout.write(`Paid. The customer returns to ${paid.returnUrl}\n`);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
