import { Code, ConnectError } from '@connectrpc/connect';

/** A message in its frame: one byte of flags, four of length, the bytes (github.com/grpc/grpc, PROTOCOL-HTTP2). */
export interface Envelope {
  readonly flags: number;
  readonly data: Buffer;
}

const headBytes = 5;

/** Splits a body into messages of at most `bytesMax`, however it is cut into pieces, and refuses in Connect's words. */
export class EnvelopeReader {
  readonly #bytesMax: number;
  #partial: PartialEnvelope | undefined;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The envelopes that this piece of the body completes. Throws at a length over the limit, before any byte is kept. */
  push(chunk: Buffer): Envelope[] {
    const envelopes: Envelope[] = [];
    let rest = chunk;
    while (rest.length > 0) {
      // Most messages come in one piece, and are taken where they lie.
      const whole = this.#partial === undefined ? wholeEnvelope(rest, this.#bytesMax) : undefined;
      if (whole === undefined) {
        this.#partial ??= new PartialEnvelope(this.#bytesMax);
        rest = this.#partial.take(rest);
        if (!this.#partial.isComplete()) continue;
        envelopes.push(this.#partial.envelope());
        this.#partial = undefined;
      } else {
        envelopes.push(whole);
        rest = rest.subarray(headBytes + whole.data.length);
      }
    }
    return envelopes;
  }

  /** Whether bytes have come that belong to no complete part. Of an announced message none may have come: Connect takes that. */
  isCut(): boolean {
    return this.#partial?.isCut() === true;
  }
}

function wholeEnvelope(bytes: Buffer, bytesMax: number): Envelope | undefined {
  if (bytes.length < headBytes) return undefined;
  const end = headBytes + lengthIn(bytes, bytesMax);
  return end <= bytes.length ? { flags: bytes[0] ?? 0, data: bytes.subarray(headBytes, end) } : undefined;
}

/**
 * A message whose pieces are put together. Room is made for what has come and not for what is announced: five bytes on each of
 * many streams would otherwise hold 64 KiB each. It is doubled when it is too small, so that few bytes are copied twice.
 */
class PartialEnvelope {
  readonly #bytesMax: number;
  readonly #head = Buffer.alloc(headBytes);
  #headFilled = 0;
  /** Undefined until the head has come. */
  #length: number | undefined;
  #data = Buffer.alloc(0);
  #dataFilled = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Takes over what belongs to this message and gives the rest. */
  take(bytes: Buffer): Buffer {
    const forHead = bytes.subarray(0, headBytes - this.#headFilled);
    this.#head.set(forHead, this.#headFilled);
    this.#headFilled += forHead.length;
    if (this.#headFilled < headBytes) return bytes.subarray(forHead.length);
    this.#length ??= lengthIn(this.#head, this.#bytesMax);
    const forData = bytes.subarray(forHead.length, forHead.length + this.#length - this.#dataFilled);
    this.#makeRoom(this.#dataFilled + forData.length, this.#length);
    this.#data.set(forData, this.#dataFilled);
    this.#dataFilled += forData.length;
    return bytes.subarray(forHead.length + forData.length);
  }

  isComplete(): boolean {
    return this.#dataFilled === this.#length;
  }

  isCut(): boolean {
    return this.#length === undefined ? this.#headFilled > 0 : this.#dataFilled > 0;
  }

  envelope(): Envelope {
    return { flags: this.#head[0] ?? 0, data: this.#data };
  }

  /** At the end of the message the room is exactly as long as it. */
  #makeRoom(bytes: number, length: number): void {
    if (bytes <= this.#data.length) return;
    const grown = Buffer.alloc(Math.min(length, Math.max(bytes, 2 * this.#data.length)));
    grown.set(this.#data);
    this.#data = grown;
  }
}

/** The length in the head at the beginning of the bytes. */
function lengthIn(bytes: Buffer, bytesMax: number): number {
  const length = bytes.readUInt32BE(1);
  if (length <= bytesMax) return length;
  throw new ConnectError(
    `message size ${length} is larger than configured readMaxBytes ${bytesMax}`,
    Code.ResourceExhausted,
  );
}

/** A message in its frame, not compressed: bytes, or a text of which each character is one. */
export function encodeEnvelope(data: Uint8Array | string): Buffer {
  const envelope = Buffer.allocUnsafe(headBytes + data.length);
  envelope[0] = 0;
  envelope.writeUInt32BE(data.length, 1);
  if (typeof data === 'string') envelope.write(data, headBytes, 'latin1');
  else envelope.set(data, headBytes);
  return envelope;
}
