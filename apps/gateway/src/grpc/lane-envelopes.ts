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
  const head = new Uint8Array(headBytes);
  let headFilled = 0;
  let data: Uint8Array | undefined;
  let dataFilled = 0;

  /** Takes over what it can of the piece into `target`, and gives how many bytes that was. */
  const fill = (target: Uint8Array, filled: number, chunk: Uint8Array, offset: number): number => {
    const count = Math.min(target.length - filled, chunk.length - offset);
    target.set(chunk.subarray(offset, offset + count), filled);
    return count;
  };

  return {
    push(chunk) {
      const envelopes: Envelope[] = [];
      let offset = 0;
      for (;;) {
        if (data === undefined) {
          const count = fill(head, headFilled, chunk, offset);
          headFilled += count;
          offset += count;
          if (headFilled < headBytes) return envelopes;
          data = new Uint8Array(lengthIn(head, bytesMax));
          dataFilled = 0;
        }
        const count = fill(data, dataFilled, chunk, offset);
        dataFilled += count;
        offset += count;
        if (dataFilled < data.length) return envelopes;
        envelopes.push({ flags: head[0] ?? 0, data });
        data = undefined;
        headFilled = 0;
      }
    },
    isCut: () => (data === undefined ? headFilled > 0 : dataFilled > 0),
  };
}

function lengthIn(head: Uint8Array, bytesMax: number): number {
  const length = new DataView(head.buffer).getUint32(1);
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
