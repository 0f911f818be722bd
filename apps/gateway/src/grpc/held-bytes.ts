const noRoom = Buffer.alloc(0);

/**
 * Bytes that are put together, in room for what has come, which is doubled when it is too small: room for what is only announced
 * would let five bytes on each of many calls hold 64 KiB each. They are copied, as a piece of few bytes can be a part of all that
 * was read from its socket, and would keep it.
 */
export class HeldBytes {
  readonly #bytesMax: number;
  #room: Buffer = noRoom;
  #length = 0;

  /** No more than `bytesMax` are expected: above that, there is room for what has come and no more. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get length(): number {
    return this.#length;
  }

  add(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#room.length) {
      const grown = Buffer.alloc(Math.max(length, Math.min(2 * this.#room.length, this.#bytesMax)));
      grown.set(this.bytes());
      this.#room = grown;
    }
    this.#room.set(piece, this.#length);
    this.#length = length;
  }

  bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }

  /** Gives the bytes before `end` away and holds the rest. */
  take(end: number): Buffer {
    const bytes = this.bytes();
    this.#room = noRoom;
    this.#length = 0;
    this.add(bytes.subarray(end));
    return bytes.subarray(0, end);
  }
}

/**
 * Bytes of a body that wait to be read. Most bodies come in one piece, which is kept as it is. More are put together: a byte in a
 * frame of its own takes far more than a byte, so that a client that is not known yet could hold 180 MB in the windows of one connection
 * while the check of its credentials takes long.
 */
export class WaitingBytes {
  readonly #bytesMax: number;
  #first: Buffer | undefined;
  #all: HeldBytes | undefined;

  /** No more than `bytesMax` are expected. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  add(piece: Buffer): void {
    if (this.#all !== undefined) {
      this.#all.add(piece);
    } else if (this.#first === undefined) {
      this.#first = piece;
    } else {
      this.#all = new HeldBytes(this.#bytesMax);
      this.#all.add(this.#first);
      this.#all.add(piece);
      // Nor is that kept which it is a part of.
      this.#first = undefined;
    }
  }

  /** Gives all that waits, if anything does, and holds nothing any more. */
  take(): Buffer | undefined {
    const bytes = this.#all?.bytes() ?? this.#first;
    this.#first = undefined;
    this.#all = undefined;
    return bytes;
  }
}
