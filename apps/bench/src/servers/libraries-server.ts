import { once } from 'node:events';
import { createServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import { buffer } from 'node:stream/consumers';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import {
  CreateOrderRequestSchema,
  CreateOrderResponseSchema,
} from '@order-gateway/contract/gateway/v1/order_service_pb';
import { fastify } from 'fastify';
import { pino } from 'pino';
import { portOf, reportReady } from '../programs.ts';
import { createBareInsert } from './bare-insert.ts';

// A program that shows the cost per order of the gateway's libraries. Both servers parse a request, insert a row as the
// bare servers do, and send a response and a log line, without credentials, rules, metrics or limits.

const insert = createBareInsert(process.env.DATABASE_URL ?? '', Number(process.env.MERCHANT_ID));
const [createdAt, orderToken] = [new Date().toISOString(), 'x'.repeat(32)];
const [orderId, paymentLink] = ['order-1000000', `http://localhost:8080/payment/${orderToken}`];
const json = {
  service_order_id: 1_000_000,
  created_at: createdAt,
  order_id: orderId,
  order_status: 'UN_PAID',
  order_token: orderToken,
  payment_link: paymentLink,
};
const grpc = { serviceOrderId: 1_000_000n, createdAt, orderId, orderToken, paymentLink };
/** The prefix of a gRPC message: one byte for the flags and four for the length. */
const prefixBytes = 5;
const requestId = { 'x-request-id': 'x'.repeat(16) };

const logger = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ minLength: 8_192 }));
const log = (protocol: string) =>
  logger.info({ ...requestId, protocol, operation: 'CreateOrder', merchant_id: 1, code: 'created' }, 'call');

const http = fastify();
http.post('/order', async (_request, reply) => {
  reply.raw.once('close', () => log('json'));
  await insert();
  return reply.code(201).headers(requestId).send(json);
});

async function createOrder(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
  response.once('close', () => log('grpc'));
  const body = await buffer(request);
  fromBinary(CreateOrderRequestSchema, body.subarray(prefixBytes));
  await insert();
  if (response.stream.closed) return;
  const message = toBinary(CreateOrderResponseSchema, create(CreateOrderResponseSchema, grpc));
  const prefix = Buffer.alloc(prefixBytes);
  prefix.writeUInt32BE(message.length, 1);
  response.writeHead(200, { ...requestId, 'content-type': 'application/grpc' });
  response.addTrailers(Object.fromEntries(setTrailerStatus(new Headers(), undefined)));
  response.end(Buffer.concat([prefix, message]));
}
const http2 = createServer((request, response) => void createOrder(request, response)).listen(0, '127.0.0.1');

await Promise.all([http.listen({ port: 0, host: '127.0.0.1' }), once(http2, 'listening')]);
reportReady({ http: portOf(http.server), grpc: portOf(http2) });
