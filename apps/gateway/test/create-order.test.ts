import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Client, Code, ConnectError, createClient, type Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import { BadRequestSchema, ErrorInfoSchema } from '@gateway/contract/google/rpc/error_details_pb';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { credentials as grpcCredentials, loadPackageDefinition, Metadata, status } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import postgres from 'postgres';
import { describe, expect, test } from 'vitest';
import { createOrderPath } from './grpc-call.ts';
import { runGateway, useGateway } from './running-gateway.ts';
import { answerOf, credentialHeaders, orderMessage, postOrder } from './send-order.ts';

const protoFolder = join(import.meta.dirname, '../../../proto');
const bufCommand = join(import.meta.dirname, '../../../packages/contract/node_modules/.bin/buf');

const gateway = useGateway();

function client(transport: Transport): Client<typeof OrderService> {
  return createClient(OrderService, transport);
}

/** A client that is not Connect's own, with descriptors that it makes from the proto file by itself. */
function grpcJsCall(
  order: ReturnType<typeof validOrderInput>,
): Promise<{ answer: Record<string, unknown>; replayed: unknown[] }> {
  const definition = loadSync('gateway/v1/order_service.proto', {
    includeDirs: [protoFolder],
    keepCase: true,
    longs: String,
    enums: String,
  });
  const service = Object(loadPackageDefinition(definition)).gateway.v1.OrderService;
  const stub = new service(`127.0.0.1:${gateway.grpcPort}`, grpcCredentials.createInsecure());
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(credentialHeaders(gateway.credentials))) metadata.set(name, value);
  return new Promise((resolve, reject) => {
    let replayed: unknown[] = [];
    const call = stub.createOrder(
      order,
      metadata,
      { deadline: Date.now() + 10_000 },
      (error: Error | null, answer: Record<string, unknown>) => {
        stub.close();
        if (error) reject(error);
        else resolve({ answer, replayed });
      },
    );
    call.on('metadata', (headers: Metadata) => {
      replayed = headers.get('idempotent-replayed');
    });
  });
}

describe('POST /order', () => {
  test('responds 201 with exactly the six fields of the interface', async () => {
    const response = await postOrder(gateway, validOrderInput({ order_id: 'six-fields' }));
    expect(response.status).toBe(201);
    expect(response.headers.get('idempotent-replayed')).toBeNull();
    const answer = await answerOf(response);
    expect(Object.keys(answer)).toEqual([
      'service_order_id',
      'created_at',
      'order_id',
      'order_status',
      'order_token',
      'payment_link',
    ]);
    expect(Number.isSafeInteger(answer.service_order_id) && answer.service_order_id > 0).toBe(true);
    expect(answer.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);
    expect(answer.order_id).toBe('six-fields');
    expect(answer.order_status).toBe('UN_PAID');
    expect(answer.order_token).toMatch(/^[0-9A-Za-z]{32}$/);
    expect(answer.payment_link).toBe(`${gateway.baseUrl}/payment/${answer.order_token}`);
  });

  test('responds 200 with the same bytes to the same order, and 409 to another order', async () => {
    const first = await postOrder(gateway, validOrderInput({ order_id: 'again' }));
    const second = await postOrder(gateway, validOrderInput({ order_id: 'again' }));
    expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
    expect(await second.text()).toBe(await first.text());
    const conflict = await postOrder(
      gateway,
      validOrderInput({ order_id: 'again', order_amount: 11, order_note: 'x' }),
    );
    expect(conflict.status).toBe(409);
    expect(conflict.headers.get('content-type')).toContain('application/problem+json');
    expect(await conflict.json()).toMatchObject({ code: 'order_id_conflict', fields: ['order_amount', 'order_note'] });
  });

  test('50 concurrent identical requests create one row and get the same response', async () => {
    const order = validOrderInput({ order_id: 'fifty' });
    const responses = await Promise.all(Array.from({ length: 50 }, () => postOrder(gateway, order)));
    expect(responses.filter(({ status }) => status === 201).length).toBe(1);
    expect(responses.filter(({ status }) => status === 200).length).toBe(49);
    expect(new Set(await Promise.all(responses.map((response) => response.text()))).size).toBe(1);
    const sql = postgres(gateway.databaseUrl, { max: 1 });
    const rows = await sql`select 1 from orders where order_id = 'fifty'`;
    await sql.end({ timeout: 1 });
    expect(rows.length).toBe(1);
  });

  test('echoes a request id of the allowed form and makes one otherwise', async () => {
    const echoed = await postOrder(gateway, '{}', { 'x-request-id': 'shop-4711.a_b' });
    expect(echoed.headers.get('x-request-id')).toBe('shop-4711.a_b');
    expect(await echoed.json()).toMatchObject({ request_id: 'shop-4711.a_b' });
    const made = await postOrder(gateway, '{}', { 'x-request-id': 'not allowed' });
    expect(made.headers.get('x-request-id')).toMatch(/^[0-9A-Za-z]{16}$/);
  });

  test('logs one line a call, with nothing in it but the allowed facts', async () => {
    const before = gateway.calls.length;
    const response = await postOrder(gateway, validOrderInput({ order_id: 'logged' }), { 'x-request-id': 'logged-1' });
    await response.text();
    await expect.poll(() => gateway.calls.length).toBe(before + 1);
    expect(gateway.calls.at(-1)).toEqual({
      level: 30,
      time: expect.any(String),
      msg: 'call',
      request_id: 'logged-1',
      protocol: 'json',
      operation: 'CreateOrder',
      remote_address: '127.0.0.1',
      merchant_id: 1,
      code: 'created',
      http_status: 201,
      duration_ms: expect.any(Number),
    });
  });
});

describe('every protocol', () => {
  test('gives the same order to whoever sends it, whatever the protocol and the client', async () => {
    const headers = credentialHeaders(gateway.credentials);
    const { url: http, grpcUrl: grpc } = gateway;
    const created = await answerOf(await postOrder(gateway, validOrderInput({ order_id: 'every-protocol' })));
    const transports = [
      createConnectTransport({ baseUrl: http, httpVersion: '1.1', useBinaryFormat: true }),
      createConnectTransport({ baseUrl: http, httpVersion: '1.1', useBinaryFormat: false }),
      createGrpcWebTransport({ baseUrl: http, httpVersion: '1.1' }),
      createGrpcTransport({ baseUrl: grpc }),
    ];
    for (const transport of transports) {
      let replayed: string | null = null;
      const answer = await client(transport).createOrder(orderMessage('every-protocol'), {
        headers,
        onHeader: (received) => {
          replayed = received.get('idempotent-replayed');
        },
      });
      expect(answer).toMatchObject({
        serviceOrderId: BigInt(created.service_order_id),
        createdAt: created.created_at,
        orderId: 'every-protocol',
        orderToken: created.order_token,
        paymentLink: created.payment_link,
      });
      expect(replayed).toBe('true');
    }
    const stock = await grpcJsCall(validOrderInput({ order_id: 'every-protocol' }));
    expect(stock.answer).toEqual({ ...created, service_order_id: String(created.service_order_id) });
    expect(stock.replayed).toEqual(['true']);
  });

  test.each(['connect', 'grpc', 'grpcweb'])('takes a call from buf curl over %s', async (protocol) => {
    const created = await answerOf(await postOrder(gateway, validOrderInput({ order_id: 'buf-curl' })));
    const port = protocol === 'grpc' ? gateway.grpcPort : gateway.httpPort;
    const { stdout } = await promisify(execFile)(
      bufCommand,
      [
        ...[
          'curl',
          '--protocol',
          protocol,
          '--schema',
          protoFolder,
          ...(protocol === 'grpc' ? ['--http2-prior-knowledge'] : []),
        ],
        ...Object.entries(credentialHeaders(gateway.credentials)).flatMap(([name, value]) => [
          '-H',
          `${name}: ${value}`,
        ]),
        ...['-d', JSON.stringify(validOrderInput({ order_id: 'buf-curl' }))],
        `http://127.0.0.1:${port}${createOrderPath}`,
      ],
      { timeout: 20_000 },
    );
    expect(JSON.parse(stdout)).toEqual({ ...created, service_order_id: String(created.service_order_id) });
  });

  test('rejects with the machine code and one violation a field in details that a stock client decodes', async () => {
    const transport = createGrpcTransport({ baseUrl: gateway.grpcUrl });
    const rejected = await client(transport)
      .createOrder(
        { ...orderMessage('rejected'), orderAmount: 10.001, customerPhone: '12' },
        { headers: credentialHeaders(gateway.credentials) },
      )
      .catch((error: unknown) => ConnectError.from(error));
    if (!(rejected instanceof ConnectError)) throw new Error('the order was taken');
    expect(rejected.code).toBe(Code.InvalidArgument);
    expect(rejected.findDetails(ErrorInfoSchema)).toMatchObject([{ reason: 'invalid_order', domain: 'order-gateway' }]);
    const violations = rejected.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) => fieldViolations);
    expect(violations.map(({ field, reason }) => [field, reason])).toEqual([
      ['order_amount', 'too_precise'],
      ['customer_phone', 'too_short'],
    ]);
  });

  test('a stock client gets an early error with its message', async () => {
    const order = validOrderInput({ order_id: 'in-words' });
    await grpcJsCall(order);
    const rejected = grpcJsCall({ ...order, order_note: 'another' });
    await expect(rejected).rejects.toMatchObject({
      code: status.ALREADY_EXISTS,
      details: 'You have another order with this order_id. It differs in: order_note',
    });
  });

  test('gives missing, unknown and wrong credentials the same response', async () => {
    const unknown = { ...gateway.credentials, clientId: 'app_000000000000000000000000' };
    const wrong = { ...gateway.credentials, clientSecret: `sk_${'0'.repeat(43)}` };
    const cases = [{}, credentialHeaders(unknown), credentialHeaders(wrong)];
    const answers = await Promise.all(
      cases.map(async (headers) => {
        const response = await fetch(`${gateway.url}/order`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-request-id': 'same', ...headers },
          body: '{',
        });
        return [response.status, await response.text()];
      }),
    );
    expect(answers[0]?.[0]).toBe(401);
    expect(answers[1]).toEqual(answers[0]);
    expect(answers[2]).toEqual(answers[0]);
    const transport = createGrpcTransport({ baseUrl: gateway.grpcUrl });
    for (const headers of cases) {
      const rejected = await client(transport)
        .createOrder({}, { headers })
        .catch((error: unknown) => ConnectError.from(error));
      expect(rejected).toMatchObject({ code: status.UNAUTHENTICATED });
    }
  });
});

test('a base URL with a path: links contain it, and routes are mounted under it', async () => {
  const mounted = await runGateway({ baseUrl: 'https://pay.example.com/gateway/' });
  const created = await postOrder(mounted);
  expect(created.status).toBe(201);
  const { order_token, payment_link } = await answerOf(created);
  expect(payment_link).toBe(`https://pay.example.com/gateway/payment/${order_token}`);
  const outside = await postOrder({ ...mounted, url: `http://127.0.0.1:${mounted.httpPort}` });
  expect(outside.status).toBe(404);
  for (const path of ['/foo/order', '/another/order', '/GATEWAY/order', '/gatewayorder']) {
    const elsewhere = await fetch(`http://127.0.0.1:${mounted.httpPort}${path}`);
    expect([path, elsewhere.status]).toEqual([path, 404]);
  }
  expect((await fetch(`${mounted.url}/order?x=1`)).status).toBe(405);
  const transport = createConnectTransport({ baseUrl: mounted.url, httpVersion: '1.1' });
  const answer = await client(transport).createOrder(orderMessage('mounted'), {
    headers: credentialHeaders(mounted.credentials),
  });
  expect(answer.paymentLink).toBe(`https://pay.example.com/gateway/payment/${answer.orderToken}`);
});
