import { Code, ConnectError } from '@connectrpc/connect';

/** A message in its frame: one byte of flags, four of length, the bytes (github.com/grpc/grpc, PROTOCOL-HTTP2). */
export interface Envelope {
  readonly flags: number;
  readonly data: Uint8Array;
}

export interface EnvelopeReader {
  /** The envelopes that this piece of the body completes. Throws at a length over the limit, before any byte is kept. */
  push(chunk: Uint8Array): Envelope[];
  /** Whether bytes have come that belong to no complete part. Of an announced message none may have come: Connect takes that. */
  isCut(): boolean;
}

const headBytes = 5;

/** Splits a body into messages of at most `bytesMax`, however it is cut into pieces, and refuses in Connect's words. */
export function createEnvelopeReader(bytesMax: number): EnvelopeReader {
  let partial: PartialEnvelope | undefined;
  return {
    push(chunk) {
      const envelopes: Envelope[] = [];
      let rest = chunk;
      while (rest.length > 0) {
        // Most messages come in one piece, and are taken where they lie.
        const whole = partial === undefined ? wholeEnvelope(rest, bytesMax) : undefined;
        if (whole === undefined) {
          partial ??= new PartialEnvelope(bytesMax);
          rest = partial.take(rest);
          if (!partial.isComplete()) continue;
          envelopes.push(partial.envelope());
          partial = undefined;
        } else {
          envelopes.push(whole);
          rest = rest.subarray(headBytes + whole.data.length);
        }
      }
      return envelopes;
    },
    isCut: () => partial?.isCut() === true,
  };
}

function wholeEnvelope(bytes: Uint8Array, bytesMax: number): Envelope | undefined {
  if (bytes.length < headBytes) return undefined;
  const end = headBytes + lengthIn(bytes, bytesMax);
  return end <= bytes.length ? { flags: bytes[0] ?? 0, data: bytes.subarray(headBytes, end) } : undefined;
}

/** A message whose pieces are put together: room is made once its length is known, and no byte is copied twice. */
class PartialEnvelope {
  readonly #bytesMax: number;
  readonly #head = new Uint8Array(headBytes);
  #headFilled = 0;
  #data: Uint8Array | undefined;
  #dataFilled = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Takes over what belongs to this message and gives the rest. */
  take(bytes: Uint8Array): Uint8Array {
    const forHead = bytes.subarray(0, headBytes - this.#headFilled);
    this.#head.set(forHead, this.#headFilled);
    this.#headFilled += forHead.length;
    if (this.#headFilled < headBytes) return bytes.subarray(forHead.length);
    this.#data ??= new Uint8Array(lengthIn(this.#head, this.#bytesMax));
    const forData = bytes.subarray(forHead.length, forHead.length + this.#data.length - this.#dataFilled);
    this.#data.set(forData, this.#dataFilled);
    this.#dataFilled += forData.length;
    return bytes.subarray(forHead.length + forData.length);
  }

  isComplete(): boolean {
    return this.#dataFilled === this.#data?.length;
  }

  isCut(): boolean {
    return this.#data === undefined ? this.#headFilled > 0 : this.#dataFilled > 0;
  }

  envelope(): Envelope {
    return { flags: this.#head[0] ?? 0, data: this.#data ?? new Uint8Array() };
  }
}

/** The length in the head at the beginning of the bytes. */
function lengthIn(bytes: Uint8Array, bytesMax: number): number {
  const length = new DataView(bytes.buffer, bytes.byteOffset, headBytes).getUint32(1);
  if (length <= bytesMax) return length;
  throw new ConnectError(
    `message size ${length} is larger than configured readMaxBytes ${bytesMax}`,
    Code.ResourceExhausted,
  );
}

/** A message in its frame, not compressed. */
export function encodeEnvelope(data: Uint8Array): Buffer {
  const envelope = Buffer.allocUnsafe(headBytes + data.length);
  envelope[0] = 0;
  envelope.writeUInt32BE(data.length, 1);
  envelope.set(data, headBytes);
  return envelope;
}
