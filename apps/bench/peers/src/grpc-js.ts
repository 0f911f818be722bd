import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { openInsert } from './drizzle-insert.js';
import { answerOf, knows, type OrderFields, ready } from './new-order.js';

// grpc-js, and one insert a call. PREPARED=1: by a statement with a name.

const insert = openInsert(process.env.PREPARED === '1');

function createOrder(call: ServerUnaryCall<OrderFields, unknown>, answer: sendUnaryData<unknown>): void {
  const { 'x-client-id': clientId, 'x-client-secret': clientSecret } = call.metadata.getMap();
  const { order_id, order_amount, order_currency, customer_name } = call.request;
  if (!knows(clientId, clientSecret)) {
    answer({ code: status.UNAUTHENTICATED });
    return;
  }
  if (!order_id || !(order_amount > 0) || order_currency?.length !== 3 || !customer_name) {
    answer({ code: status.INVALID_ARGUMENT });
    return;
  }
  insert(call.request).then(
    (order) => answer(null, answerOf(order, order_id)),
    () => answer({ code: status.INTERNAL }),
  );
}

const definition = loadSync('gateway/v1/order_service.proto', {
  includeDirs: [process.env.PROTO_DIR ?? ''],
  keepCase: true,
  longs: Number,
  enums: String,
});
const { OrderService } = Object(loadPackageDefinition(definition)).gateway.v1;
const server = new Server();
server.addService(OrderService.service, { CreateOrder: createOrder });
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  ready(port);
});
