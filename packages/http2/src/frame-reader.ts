import { ConnectionFault, errorCodes, frameBytesMax, frameHeadBytes } from './frames.ts';

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** Pieces that are kept apart until a frame is whole. Above that they are joined: each takes far more memory than it is long. */
const piecesMax = 32;

/** Splits what comes on a connection into frames, however it is cut into pieces. */
export class FrameReader {
  /** What has come of a frame that is not whole. */
  #pieces: Buffer[] = [];
  #length = 0;
  /** How many bytes have to be there before there is more to know. */
  #needed = frameHeadBytes;

  /** Whether bytes are held of a frame that is not whole. */
  get isCut(): boolean {
    return this.#length > 0;
  }

  /** Gives on every frame that this piece completes. Throws at one that is too long, as soon as its head is there. */
  take(piece: Buffer, onFrame: (frame: Frame) => void): void {
    let bytes = piece;
    if (this.#length > 0) {
      this.#pieces.push(piece);
      this.#length += piece.length;
      if (this.#length >= this.#needed || this.#pieces.length > piecesMax) this.#pieces = [Buffer.concat(this.#pieces)];
      if (this.#length < this.#needed) return;
      bytes = this.#pieces[0] ?? piece;
    }
    let at = 0;
    while (bytes.length - at >= frameHeadBytes) {
      const length = bytes.readUIntBE(at, 3);
      if (length > frameBytesMax) throw new ConnectionFault(errorCodes.frameSizeError, 'a frame is too long');
      const end = at + frameHeadBytes + length;
      this.#needed = end - at;
      if (end > bytes.length) break;
      this.#needed = frameHeadBytes;
      onFrame(frameAt(bytes, at, end));
      at = end;
    }
    // A copy: the piece may be many times as long as what is left of it.
    this.#pieces = at < bytes.length ? [Buffer.from(bytes.subarray(at))] : [];
    this.#length = bytes.length - at;
  }
}

function frameAt(bytes: Buffer, at: number, end: number): Frame {
  return {
    type: bytes[at + 3] ?? 0,
    flags: bytes[at + 4] ?? 0,
    // The highest bit of a stream's number means nothing (RFC 9113, 4.1).
    streamId: bytes.readUInt32BE(at + 5) & 0x7fff_ffff,
    payload: bytes.subarray(at + frameHeadBytes, end),
  };
}
