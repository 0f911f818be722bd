import { join } from 'node:path';
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { reportReady } from '../programs.ts';
import { createInsert, hasValidCredentials, type OrderFields, type OrderResponse } from './orders.ts';

// A service written with grpc-js, with one insert per call.

const insert = createInsert();

function createOrder(call: ServerUnaryCall<OrderFields, OrderResponse>, respond: sendUnaryData<OrderResponse>): void {
  const { 'x-client-id': clientId, 'x-client-secret': clientSecret } = call.metadata.getMap();
  const { order_id, order_amount, order_currency, customer_name } = call.request;
  if (!hasValidCredentials(clientId, clientSecret)) respond({ code: status.UNAUTHENTICATED });
  else if (!order_id || !(order_amount > 0) || order_currency.length !== 3 || !customer_name) {
    respond({ code: status.INVALID_ARGUMENT });
  } else {
    insert(call.request).then(
      (response) => respond(null, response),
      () => respond({ code: status.INTERNAL }),
    );
  }
}

const definition = loadSync('gateway/v1/order_service.proto', {
  includeDirs: [join(import.meta.dirname, '../../../../proto')],
  keepCase: true,
  longs: Number,
  enums: String,
});
const { OrderService } = Object(loadPackageDefinition(definition)).gateway.v1;
const server = new Server();
server.addService(OrderService.service, { CreateOrder: createOrder });
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  reportReady({ grpc: port });
});
