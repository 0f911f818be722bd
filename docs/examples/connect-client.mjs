// Creates an order and looks it up again with Connect's client. Packages: @connectrpc/connect,
// @connectrpc/connect-node, @bufbuild/protobuf, and @order-gateway/contract (see README.md).
// Usage: GRPC_ADDRESS=127.0.0.1:9090 CLIENT_ID=app_... CLIENT_SECRET=sk_... ORDER_ID=web-1001 node connect-client.mjs
import { toJsonString } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { OrderSchema, ServiceType } from '@order-gateway/contract/gateway/v1/order_pb';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { ErrorInfoSchema } from '@order-gateway/contract/google/rpc/error_details_pb';

const { GRPC_ADDRESS, CLIENT_ID, CLIENT_SECRET, ORDER_ID } = process.env;

const client = createClient(OrderService, createGrpcTransport({ baseUrl: `http://${GRPC_ADDRESS}` }));
const options = { headers: { 'x-client-id': CLIENT_ID, 'x-client-secret': CLIENT_SECRET }, timeoutMs: 5_000 };

const order = {
  orderId: ORDER_ID,
  orderAmount: 10.0,
  orderCurrency: 'USD',
  orderNote: 'Two tickets',
  serviceType: ServiceType.DIGITAL,
  customerName: 'Ada Lovelace',
  customerEmail: 'ada@example.com',
  customerPhone: '+44 20 7946 0018',
  customerAddressLine1: '12 St James Square',
  customerAddressCity: 'London',
  customerAddressState: 'London',
  customerAddressCountry: 'United Kingdom',
  customerAddressPostalCode: 'SW1Y 4JH',
  orderChecksum: 'none',
  returnUrl: 'https://shop.example.com/thanks',
};

try {
  await client.createOrder(order, options);
  // To look it up by the gateway's own id, pass { order: { case: 'serviceOrderId', value: created.serviceOrderId } }
  const { order: found } = await client.getOrder({ order: { case: 'orderId', value: ORDER_ID } }, options);
  process.stdout.write(`${toJsonString(OrderSchema, found)}\n`);
} catch (error) {
  const failure = ConnectError.from(error);
  const code = failure.findDetails(ErrorInfoSchema)[0]?.metadata.code;
  // Decide by the code. After Unavailable and DeadlineExceeded, send the same order again.
  process.stderr.write(`${Code[failure.code]} ${code}: ${failure.message}\n`);
  process.exitCode = 1;
}
