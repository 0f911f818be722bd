import { create, fromBinary, type MessageInitShape, ScalarType, toBinary } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema, CreateOrderResponseSchema } from '@gateway/contract/gateway/v1/order_service_pb';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OrderAnswer } from '../order-answer.ts';
import { answerMessage } from './order-message.ts';
import { orderInputOf } from './order-service.ts';
import { readOrderInput, writeOrderAnswer } from './order-wire.ts';

const seed = 20_261_121;

const text = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.constantFrom('', '\u0000', '\ufeffmarked', 'x'.repeat(127), 'x'.repeat(128), 'x'.repeat(16_383)),
);

const texts = Object.fromEntries(
  CreateOrderRequestSchema.fields
    .filter(({ fieldKind, scalar }) => fieldKind === 'scalar' && scalar === ScalarType.STRING)
    .map(({ localName }) => [localName, text]),
);

/** Any order: each field may be missing. */
const request: fc.Arbitrary<MessageInitShape<typeof CreateOrderRequestSchema>> = fc.record(
  { ...texts, orderAmount: fc.double(), serviceType: fc.constantFrom(0, 1, 2) },
  { requiredKeys: [] },
);

function bytesOf(message: MessageInitShape<typeof CreateOrderRequestSchema>): Buffer {
  return Buffer.from(toBinary(CreateOrderRequestSchema, create(CreateOrderRequestSchema, message)));
}

/** What the library reads, or undefined where it refuses. */
function readByLibrary(data: Buffer) {
  try {
    return orderInputOf(fromBinary(CreateOrderRequestSchema, data));
  } catch {
    return undefined;
  }
}

describe('readOrderInput', () => {
  it('reads every order as the library does', () => {
    fc.assert(
      fc.property(request, (message) => {
        const data = bytesOf(message);
        expect(readOrderInput(data)).toEqual(readByLibrary(data));
      }),
      { numRuns: 1_000, seed },
    );
  });

  it('reads of repeated fields the last, as the library does', () => {
    fc.assert(
      fc.property(request, request, (first, second) => {
        const data = Buffer.concat([bytesOf(first), bytesOf(second)]);
        expect(readOrderInput(data)).toEqual(readByLibrary(data));
      }),
      { numRuns: 300, seed },
    );
  });

  it('reads bytes that were changed, cut or put in as the library does, or leaves them to it', () => {
    const change = fc.tuple(fc.nat(), fc.uint8Array({ maxLength: 4 }), fc.nat({ max: 4 }));
    let left = 0;
    fc.assert(
      fc.property(request, fc.array(change, { minLength: 1, maxLength: 3 }), (message, changes) => {
        let data = bytesOf(message);
        for (const [place, put, taken] of changes) {
          const at = place % (data.length + 1);
          data = Buffer.concat([data.subarray(0, at), put, data.subarray(at + taken)]);
        }
        const read = readOrderInput(data);
        if (read === undefined) left += 1;
        else expect(read).toEqual(readByLibrary(data));
      }),
      { numRuns: 20_000, seed },
    );
    expect(left).toBeGreaterThan(1_000);
  });

  it.each([
    ['an unknown field', Buffer.from([0x88, 0x01, 0x05])],
    ['another wire type', Buffer.from([0x08, 0x05])],
    ['a service type that is not known', Buffer.from([0x28, 0x03])],
    ['a text of more than 16,383 bytes', bytesOf({ orderNote: 'x'.repeat(16_384) })],
    ['a text that is not UTF-8', Buffer.from([0x0a, 0x01, 0xff])],
    ['a text that is cut', Buffer.from([0x0a, 0x02, 0x61])],
    ['an amount that is cut', Buffer.from([0x11, 0, 0, 0])],
    ['a length that is cut', Buffer.from([0x0a])],
    ['a length in three bytes', Buffer.concat([Buffer.from([0x0a, 0x81, 0x80, 0x00]), Buffer.alloc(16_384, 'a')])],
    ['a tag alone', Buffer.from([0x28])],
  ])('leaves %s to the library', (_, data) => {
    expect(readOrderInput(data)).toBeUndefined();
  });
});

const answer: OrderAnswer = {
  service_order_id: 42_778,
  created_at: '2026-11-20T21:01:42.172+00:00',
  order_id: 'order-1',
  order_status: 'UN_PAID',
  order_token: 'Kx7dQ2mZp0LrT9vYc4HsW8nBf3GjUe6A',
  payment_link: 'http://localhost:8080/payment/Kx7dQ2mZp0LrT9vYc4HsW8nBf3GjUe6A',
};

describe('writeOrderAnswer', () => {
  it('writes the bytes that the library writes', () => {
    const anyAnswer = fc.record({
      service_order_id: fc.oneof(
        fc.integer({ min: 1 }),
        fc.maxSafeNat().filter((id) => id > 0),
      ),
      order_id: fc.string({ minLength: 1, maxLength: 200 }),
      payment_link: fc.string({ minLength: 1, maxLength: 400 }),
    });
    fc.assert(
      fc.property(anyAnswer, (given) => {
        const message = create(CreateOrderResponseSchema, answerMessage({ ...answer, ...given }));
        const written = Buffer.from(writeOrderAnswer({ ...answer, ...given }) ?? '', 'latin1');
        expect(written).toEqual(Buffer.from(toBinary(CreateOrderResponseSchema, message)));
      }),
      { numRuns: 500, seed },
    );
  });

  it('leaves texts beyond ASCII to the library', () => {
    expect(writeOrderAnswer({ ...answer, order_id: 'Bestellung-ß' })).toBeUndefined();
    expect(writeOrderAnswer({ ...answer, payment_link: 'http://zahlung.example/ü' })).toBeUndefined();
  });
});
