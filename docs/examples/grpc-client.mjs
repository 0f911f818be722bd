// Creates an order and looks it up again with grpc-js. Packages: @grpc/grpc-js, @grpc/proto-loader.
// The folder proto is the contract: curl http://localhost:8080/docs/proto.tar | tar -x
// Usage: PROTO_FOLDER=proto GRPC_ADDRESS=127.0.0.1:9090 CLIENT_ID=app_... CLIENT_SECRET=sk_... ORDER_ID=web-1001 node grpc-client.mjs
import { credentials, loadPackageDefinition, Metadata } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

const { PROTO_FOLDER, GRPC_ADDRESS, CLIENT_ID, CLIENT_SECRET, ORDER_ID } = process.env;

const definition = loadSync('gateway/v1/order_service.proto', {
  includeDirs: [PROTO_FOLDER],
  keepCase: true,
  longs: String,
  enums: String,
});
const { OrderService } = loadPackageDefinition(definition).gateway.v1;
const client = new OrderService(GRPC_ADDRESS, credentials.createInsecure());

const metadata = new Metadata();
metadata.set('x-client-id', CLIENT_ID);
metadata.set('x-client-secret', CLIENT_SECRET);

function call(method, request) {
  return new Promise((resolve, reject) => {
    const deadline = Date.now() + 5_000;
    client[method](request, metadata, { deadline }, (error, response) => (error ? reject(error) : resolve(response)));
  });
}

const order = {
  order_id: ORDER_ID,
  order_amount: 10.0,
  order_currency: 'USD',
  order_note: 'Two tickets',
  service_type: 'DIGITAL',
  customer_name: 'Ada Lovelace',
  customer_email: 'ada@example.com',
  customer_phone: '+44 20 7946 0018',
  customer_address_line1: '12 St James Square',
  customer_address_city: 'London',
  customer_address_state: 'London',
  customer_address_country: 'United Kingdom',
  customer_address_postal_code: 'SW1Y 4JH',
  order_checksum: 'none',
  return_url: 'https://shop.example.com/thanks',
};

try {
  await call('createOrder', order);
  const found = await call('getOrder', { order_id: ORDER_ID });
  process.stdout.write(`${JSON.stringify(found.order)}\n`);
} catch (error) {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
} finally {
  client.close();
}
