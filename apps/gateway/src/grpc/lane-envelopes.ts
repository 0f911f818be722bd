import { Code, ConnectError } from '@connectrpc/connect';
import { HeldBytes } from './held-bytes.ts';

/** A message in its frame: one byte of flags, four of length, the bytes (github.com/grpc/grpc, PROTOCOL-HTTP2). */
export interface Envelope {
  readonly flags: number;
  readonly data: Buffer;
}

export const envelopeHeadBytes = 5;

/** Splits a body into messages of at most `bytesMax`, however it is cut into pieces, and refuses in Connect's words. */
export class EnvelopeReader {
  readonly #bytesMax: number;
  /** What has come of an envelope that is not whole. */
  readonly #held: HeldBytes;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#held = new HeldBytes(envelopeHeadBytes + bytesMax);
  }

  /** The envelopes that this piece of the body completes. Throws at a length over the limit. */
  push(piece: Buffer): Envelope[] {
    // Most messages come in one piece, and are taken where they lie.
    const isCut = this.#held.length > 0;
    if (isCut) this.#held.add(piece);
    const bytes = isCut ? this.#held.bytes() : piece;
    const envelopes: Envelope[] = [];
    let at = 0;
    while (bytes.length - at >= envelopeHeadBytes) {
      const from = at + envelopeHeadBytes;
      const end = from + this.#checked(bytes.readUInt32BE(at + 1));
      if (end > bytes.length) break;
      envelopes.push({ flags: bytes[at] ?? 0, data: bytes.subarray(from, end) });
      at = end;
    }
    if (!isCut) this.#held.add(bytes.subarray(at));
    else if (at > 0) this.#held.take(at);
    return envelopes;
  }

  /** Whether bytes have come that belong to no complete part. Of an announced message none may have come: Connect takes that. */
  isCut(): boolean {
    return this.#held.length > 0 && this.#held.length !== envelopeHeadBytes;
  }

  #checked(length: number): number {
    if (length <= this.#bytesMax) return length;
    throw new ConnectError(
      `message size ${length} is larger than configured readMaxBytes ${this.#bytesMax}`,
      Code.ResourceExhausted,
    );
  }
}

/** A message in its frame, not compressed: bytes, or a text of which each character is one. */
export function encodeEnvelope(data: Uint8Array | string): Buffer {
  const envelope = Buffer.allocUnsafe(envelopeHeadBytes + data.length);
  envelope[0] = 0;
  envelope.writeUInt32BE(data.length, 1);
  if (typeof data === 'string') envelope.write(data, envelopeHeadBytes, 'latin1');
  else envelope.set(data, envelopeHeadBytes);
  return envelope;
}
