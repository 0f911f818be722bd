import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { type Seeded, seededAt } from '@gateway/fixtures/seeded';
import { frame, orderData } from './grpc-call.ts';

/** Bytes that parsers stumble over: JSON's and protobuf's own, and the edges of UTF-8. */
const evilBytes = [
  0x00, 0x0a, 0x22, 0x2c, 0x2d, 0x2e, 0x30, 0x39, 0x3a, 0x5b, 0x5c, 0x5d, 0x65, 0x75, 0x7b, 0x7d, 0x7f, 0x80, 0xc0,
  0xed, 0xf4, 0xff,
] as const;

const evilTexts = [
  ...['"order_id":1,', '"order_amount":1e400,', '"__proto__":{},', '\\u0000', '\\ud800', '\\', '{"a":', '[', ']]'],
  ...['1e', '-', ',,', '\ufeff', 'null', 'true', '"', '""', '10.001', '99999999999999', '0.000000000001', '\u{1f600}'],
  ...['\u202e', '/*', 'NaN'],
] as const;

/** One mutated input: the same for the same seed and number, whatever was made before it. */
export function mutatedBody(seed: number, number: number): Uint8Array {
  const random = seededAt(seed, number);
  const body = Buffer.from(JSON.stringify(validOrderInput({ order_id: `fuzz-${seed}-${number}` })));
  return mutated(body, random);
}

/** One mutated gRPC message with its five-byte prefix: the message, the prefix, or both are broken. */
export function mutatedFrame(seed: number, number: number): Uint8Array {
  const random = seededAt(seed, number);
  const message = Buffer.from(orderData(`fuzz-${seed}-${number}`));
  const framed = frame(random.below(3) > 0 ? mutated(message, random) : message);
  return random.below(3) > 0 ? framed : mutated(framed, random);
}

/** One to eight random edits. */
function mutated(bytes: Buffer, random: Seeded): Buffer {
  let result = bytes;
  for (let edits = 1 + random.below(8); edits > 0; edits -= 1) result = edited(result, random);
  return result;
}

function edited(bytes: Buffer, random: Seeded): Buffer {
  const at = random.below(bytes.length + 1);
  const length = random.below(Math.min(32, bytes.length - at + 1));
  const before = bytes.subarray(0, at);
  const after = bytes.subarray(at + length);
  switch (random.below(7)) {
    case 0:
      return Buffer.concat([before, after]);
    case 1:
      return Buffer.concat([before, Buffer.of(random.pick(evilBytes)), bytes.subarray(at)]);
    case 2:
      return Buffer.concat([before, Buffer.of(random.below(256)), bytes.subarray(Math.min(at + 1, bytes.length))]);
    case 3:
      return Buffer.concat([before, Buffer.from(random.pick(evilTexts)), bytes.subarray(at)]);
    case 4:
      return Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)]);
    case 5:
      return before;
    default: {
      const flipped = Buffer.from(bytes);
      const offset = Math.min(at, bytes.length - 1);
      if (offset >= 0) flipped.writeUInt8(flipped.readUInt8(offset) ^ (1 << random.below(8)), offset);
      return flipped;
    }
  }
}
