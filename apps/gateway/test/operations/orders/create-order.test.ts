import { join } from 'node:path';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { createOrderPath } from '../../helpers/grpc/grpc-call.ts';
import { bufCurl } from '../../helpers/grpc/rpc-clients.ts';
import { runGateway, useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, orderMessage, postOrder, postPayment, readOrder } from '../../helpers/send-order.ts';

const protoFolder = join(import.meta.dirname, '../../../../../proto');

const gateway = useGateway();

test('POST /order logs one line, with no fields but the allowed ones', async () => {
  const before = gateway.calls.length;
  const response = await postOrder(gateway, validOrderInput({ order_id: 'logged' }), { 'x-request-id': 'logged-1' });
  const { service_order_id } = await readOrder(response);
  await expect.poll(() => gateway.calls.length).toBe(before + 1);
  expect(gateway.calls.at(-1)).toEqual({
    level: 'info',
    time: expect.any(String),
    msg: 'call',
    request_id: 'logged-1',
    protocol: 'json',
    operation: 'CreateOrder',
    remote_address: '127.0.0.1',
    merchant_id: 1,
    order_id: 'logged',
    service_order_id,
    order_status: 'UN_PAID',
    code: 'created',
    http_status: 201,
    duration_ms: expect.any(Number),
  });
});

test('the log lines of the page, a cancellation and a refused payment name the order and its status', async () => {
  const { service_order_id, order_token } = await createOrder(gateway, 'followed');
  await callJson(gateway, 'POST', '/order/followed/cancel');
  await fetch(`${gateway.url}/payment/${order_token}`);
  await postPayment(gateway.checkout, order_token);
  const order = { merchant_id: 1, service_order_id };
  await expect
    .poll(() => gateway.calls.filter(({ order_id }) => order_id === 'followed'))
    .toMatchObject([
      { ...order, operation: 'CreateOrder', code: 'created', order_status: 'UN_PAID' },
      { ...order, operation: 'CancelOrder', code: 'ok', order_status: 'CANCELLED' },
      { ...order, operation: 'PaymentPage', code: 'ok', order_status: 'CANCELLED' },
      { ...order, operation: 'RecordPayment', code: 'order_cancelled', order_status: 'CANCELLED' },
    ]);
});

// grpc-reflection.test.ts tests buf curl over gRPC.
test.each(['connect', 'grpcweb'])('buf curl can send an order over %s', async (protocol) => {
  const created = await createOrder(gateway, `buf-curl-${protocol}`);
  const printed = await bufCurl(
    ...['--protocol', protocol, '--schema', protoFolder],
    ...Object.entries(gateway.headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    ...['-d', JSON.stringify(validOrderInput({ order_id: `buf-curl-${protocol}` }))],
    `${gateway.url}${createOrderPath}`,
  );
  expect(JSON.parse(printed)).toEqual({ ...created, service_order_id: String(created.service_order_id) });
});

test('a base URL with a path: links contain it, and routes are mounted under it', async () => {
  const mounted = await runGateway({ baseUrl: 'https://pay.example.com/gateway/' });
  const created = await postOrder(mounted);
  expect(created.status).toBe(201);
  const { order_token, payment_link } = await readOrder(created);
  expect(payment_link).toBe(`https://pay.example.com/gateway/payment/${order_token}`);
  const outside = await postOrder({ ...mounted, url: `http://127.0.0.1:${mounted.httpPort}` });
  expect(outside.status).toBe(404);
  for (const path of ['/foo/order', '/another/order', '/GATEWAY/order', '/gatewayorder']) {
    const elsewhere = await fetch(`http://127.0.0.1:${mounted.httpPort}${path}`);
    expect([path, elsewhere.status]).toEqual([path, 404]);
  }
  expect((await fetch(`${mounted.url}/order?x=1`, { method: 'PUT' })).status).toBe(405);
  const transport = createConnectTransport({ baseUrl: mounted.url, httpVersion: '1.1' });
  const { headers } = mounted;
  const order = await createClient(OrderService, transport).createOrder(orderMessage('mounted'), { headers });
  expect(order.paymentLink).toBe(`https://pay.example.com/gateway/payment/${order.orderToken}`);
});
