// Takes the payment of an order as a checkout system does, with grpc-js. Packages: @grpc/grpc-js, @grpc/proto-loader.
// The folder proto is the contract: curl http://localhost:8080/docs/proto.tar | tar -x
// ORDER_TOKEN is the last part of the payment link. Set PAID_AMOUNT to see how a payment of another amount is refused.
// Usage: PROTO_FOLDER=proto GRPC_ADDRESS=127.0.0.1:9090 CLIENT_ID=chk_... CLIENT_SECRET=sk_... ORDER_TOKEN=... PAYMENT_ID=pay-1 node checkout-grpc.mjs
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials, loadPackageDefinition, Metadata } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const { PROTO_FOLDER, GRPC_ADDRESS, CLIENT_ID, CLIENT_SECRET, ORDER_TOKEN, PAYMENT_ID, PAID_AMOUNT } = process.env;

const files = ['gateway/v1/checkout_service.proto', 'google/rpc/status.proto', 'google/rpc/error_details.proto'];
const definition = loadSync(files, { includeDirs: [PROTO_FOLDER], keepCase: true, longs: String, enums: String });
const { gateway, google } = loadPackageDefinition(definition);
// The policy repeats a call while the gateway is unavailable. Every method may be repeated.
const serviceConfig = readFileSync(join(PROTO_FOLDER, 'service_config.json'), 'utf8');
const client = new gateway.v1.CheckoutService(GRPC_ADDRESS, credentials.createInsecure(), {
  'grpc.service_config': serviceConfig,
});

const metadata = new Metadata();
metadata.set('x-client-id', CLIENT_ID);
metadata.set('x-client-secret', CLIENT_SECRET);

function call(method, request) {
  return new Promise((resolve, reject) => {
    const deadline = Date.now() + 5_000;
    client[method](request, metadata, { deadline }, (error, response) => (error ? reject(error) : resolve(response)));
  });
}

function codeOf(error) {
  const [bytes] = error.metadata?.get('grpc-status-details-bin') ?? [];
  const details = bytes === undefined ? [] : google.rpc.Status.deserialize(bytes).details;
  const info = details.find(({ type_url }) => type_url.endsWith('/google.rpc.ErrorInfo'));
  return info === undefined ? error.message : google.rpc.ErrorInfo.deserialize(info.value).metadata.code;
}

/**
 * Claims the order before money is taken. Until the claim ends, other attempts and cancellations get
 * payment_in_progress.
 */
async function start() {
  try {
    return (await call('startPayment', { order_token: ORDER_TOKEN, attempt_id: PAYMENT_ID })).order;
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
    return (await call('recordPayment', payment)).order;
  } catch (error) {
    const code = codeOf(error);
    const isRefused = ['order_already_paid', 'order_cancelled', 'order_expired', 'payment_mismatch'].includes(code);
    throw new Error(`${isRefused ? 'Refund the payment' : 'Keep the money, and find out why'}: ${code}`);
  }
}

try {
  const order = await start();
  // Here your system takes the money. If the customer declines or leaves, call endPayment with the attempt_id instead.
  const paid = await record({
    order_token: ORDER_TOKEN,
    attempt_id: PAYMENT_ID,
    payment_id: PAYMENT_ID,
    paid_at: new Date().toISOString(),
    order_amount: Number(PAID_AMOUNT ?? order.order_amount),
    order_currency: order.order_currency,
  });
  process.stdout.write(`Paid. The customer returns to ${paid.return_url}\n`);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
} finally {
  client.close();
}
