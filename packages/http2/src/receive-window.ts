/** What the other side may send, of a stream or of a connection (RFC 9113, 5.2). */
export class ReceiveWindow {
  #left: number;
  /** Taken, and not yet given back. */
  #held = 0;
  /** Given back, and not yet told. */
  #untold = 0;

  constructor(size: number) {
    this.#left = size;
  }

  get held(): number {
    return this.#held;
  }

  /** Takes bytes that have come. Gives false where they are more than there was room for. */
  take(bytes: number): boolean {
    this.#left -= bytes;
    this.#held += bytes;
    return this.#left >= 0;
  }

  /**
   * Gives bytes back, and gives how much the other side has to be told now. As each time costs a frame, that is nothing until as
   * much was given back as the other side still has: half of the room where all is given back at once, and sooner where the rest
   * is held, so that the other side never waits for what is there.
   */
  release(bytes: number): number {
    this.#held -= bytes;
    this.#untold += bytes;
    if (this.#untold < this.#left) return 0;
    const told = this.#untold;
    this.#left += told;
    this.#untold = 0;
    return told;
  }
}
