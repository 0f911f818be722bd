import type { Frame } from './frame-reader.ts';
import { withoutPadding } from './frame-rules.ts';
import { ConnectionFault, errorCodes, flags, frameTypes } from './frames.ts';

export interface HeaderBlock {
  readonly streamId: number;
  readonly endsStream: boolean;
  readonly bytes: Buffer;
}

/** Of a stream's priority, which means nothing any more (RFC 9113, 5.3.2). */
const priorityBytes = 5;

/** Puts header blocks together that come in several frames (RFC 9113, 6.10). */
export class HeaderBlocks {
  readonly #bytesMax: number;
  #begun: HeaderBlock | undefined;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Whether a block is held that is not complete. */
  get isCut(): boolean {
    return this.#begun !== undefined;
  }

  /** Throws at whatever comes while a block is not complete, but for what completes it. */
  check({ type, streamId }: Frame): void {
    const isDue = this.#begun === undefined ? type !== frameTypes.continuation : isNext(this.#begun, type, streamId);
    if (!isDue) throw new ConnectionFault(errorCodes.protocolError, 'a header block is cut or goes on from nothing');
  }

  /** Takes a frame of headers or a continuation, and gives the block that it completes. */
  take(one: Frame): HeaderBlock | undefined {
    const begun = this.#begun;
    const block = begun === undefined ? firstPart(one) : { ...begun, bytes: Buffer.concat([begun.bytes, one.payload]) };
    if (block.bytes.length > this.#bytesMax) {
      throw new ConnectionFault(errorCodes.enhanceYourCalm, 'too long a header block');
    }
    if ((one.flags & flags.endHeaders) === 0) {
      // A copy of the first part: the piece in which it came may be many times as long.
      this.#begun = begun === undefined ? { ...block, bytes: Buffer.from(block.bytes) } : block;
      return undefined;
    }
    this.#begun = undefined;
    return block;
  }
}

function isNext({ streamId }: HeaderBlock, type: number, ofStream: number): boolean {
  return type === frameTypes.continuation && ofStream === streamId;
}

function firstPart(one: Frame): HeaderBlock {
  let bytes = withoutPadding(one);
  if ((one.flags & flags.priority) !== 0) {
    if (bytes.length < priorityBytes) {
      const isPadded = (one.flags & flags.padded) !== 0;
      throw new ConnectionFault(isPadded ? errorCodes.protocolError : errorCodes.frameSizeError, 'a cut priority');
    }
    bytes = bytes.subarray(priorityBytes);
  }
  return { streamId: one.streamId, endsStream: (one.flags & flags.endStream) !== 0, bytes };
}
