import { randomFillSync } from 'node:crypto';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  CreateOrderRequestSchema,
  CreateOrderResponseSchema,
  OrderStatus,
} from '@gateway/contract/gateway/v1/order_service_pb';
import { NumberText } from '@gateway/domain/money';
import { checksumOf } from '@gateway/domain/order-checksum';
import { createOrderToken } from '@gateway/domain/order-token';
import { parseOrder } from '@gateway/domain/parse-order';
import { validOrderFields, validOrderInput } from '@gateway/domain/testing/sample-orders';
import { readOrderInput, writeOrderAnswer } from 'gateway/grpc/order-wire';
import { parseOrderJson } from 'gateway/http/strict-json';
import { orderMessage } from './grpc-sender.ts';
import { median } from './load.ts';

// What one order costs in each step, without the network and the database: medians of batches. `pnpm bench:micro`.

const input = validOrderInput({ order_amount: new NumberText('1249.50') });
const unicode = validOrderInput({
  order_amount: new NumberText('1249.50'),
  customer_name: 'Žofie Čapková 🛒',
  order_note: 'ř'.repeat(200),
});
const text = JSON.stringify(validOrderInput());
const fields = validOrderFields();
const json = Buffer.from(text);
const message = Buffer.from(orderMessage('WEB-2026-000417'));
const answer = {
  service_order_id: 42_778,
  created_at: '2026-11-20T21:01:42.172+00:00',
  order_id: 'WEB-2026-000417',
  order_status: 'UN_PAID',
  order_token: 'Kx7dQ2mZp0LrT9vYc4HsW8nBf3GjUe6A',
  payment_link: 'http://localhost:8080/payment/Kx7dQ2mZp0LrT9vYc4HsW8nBf3GjUe6A',
} as const;
const answerMessage = () =>
  create(CreateOrderResponseSchema, {
    serviceOrderId: BigInt(answer.service_order_id),
    createdAt: answer.created_at,
    orderId: answer.order_id,
    orderStatus: OrderStatus.UN_PAID,
    orderToken: answer.order_token,
    paymentLink: answer.payment_link,
  });
const pool = new Uint8Array(8_192);
randomFillSync(pool);
let used = 0;
const randomBytes = (count: number) => {
  used = used + count > pool.length ? 0 : used;
  used += count;
  return pool.subarray(used - count, used);
};

const steps: Readonly<Record<string, () => unknown>> = {
  'parse: JSON.parse of an order': () => JSON.parse(text),
  'parse: an order from JSON, strictly': () => parseOrderJson(json),
  'parse: protobuf-es of an order': () => fromBinary(CreateOrderRequestSchema, message),
  'parse: an order from protobuf, by hand': () => readOrderInput(message),
  'answer: protobuf-es': () => toBinary(CreateOrderResponseSchema, answerMessage()),
  'answer: protobuf by hand': () => Buffer.from(writeOrderAnswer(answer) ?? '', 'latin1'),
  'validate: all rules of an order': () => parseOrder(input),
  'validate: with letters beyond ASCII': () => parseOrder(unicode),
  'token: 32 base62 characters': () => createOrderToken(randomBytes),
  'checksum: HMAC over the canonical text': () => checksumOf(fields, `sk_${'0'.repeat(43)}`),
};

const batchesMax = 60;
const callsInBatch = 5_000;
/** What the engine needs to compile a step for good. */
const warmUpBatches = 10;

const usage = 'Usage: pnpm bench:micro, without arguments: what one order costs in each step, in microseconds\n';

// Only where it is asked for: it takes a processor for some seconds.
const [argument] = process.argv.slice(2);
if (argument === undefined) measure();
else if (argument === '--help' || argument === '-h') process.stdout.write(usage);
else {
  process.stderr.write(usage);
  process.exitCode = 1;
}

function measure(): void {
  for (const [name, step] of Object.entries(steps)) process.stdout.write(`${told(name, step)}\n`);
}

function told(name: string, step: () => unknown): string {
  const microseconds: number[] = [];
  for (let batch = 0; batch < batchesMax; batch += 1) {
    const startedAt = performance.now();
    for (let call = 0; call < callsInBatch; call += 1) step();
    microseconds.push(((performance.now() - startedAt) * 1_000) / callsInBatch);
  }
  return `${name.padEnd(42)}${median(microseconds.slice(warmUpBatches)).toFixed(2).padStart(8)} µs`;
}
