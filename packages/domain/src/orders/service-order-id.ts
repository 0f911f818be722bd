/** The largest integer that every JSON parser reads exactly: 2^53 - 1. */
export const serviceOrderIdMax = Number.MAX_SAFE_INTEGER;

/** The number of ids in a reserved block. At 10,000 orders per second, the gateway reserves one block per second. */
export const idBlockSize = 10_000;

/** Reserves the next block and returns its number, counted from 1. */
export type ReserveIdBlock = () => Promise<number>;

/** Assigns ids to new orders. */
export interface ServiceOrderIds {
  /**
   * Returns the next id, or a promise of it if the next block has to be reserved first. Rejects if the reservation
   * does.
   */
  take(): number | Promise<number>;
  /**
   * Drops the rest of the current block and the block that was reserved in advance. Call it if an id turns out to be in
   * use. The next id is from a new block.
   */
  drop(): void;
}

/**
 * Assigns service order ids from reserved blocks: positive and unique across all processes. If a process ends, the rest
 * of its block stays unused. Reserves the next block when half of the current one is used, so that calls rarely wait
 * for it.
 */
export function createServiceOrderIds(reserveBlock: ReserveIdBlock, blockSize = idBlockSize): ServiceOrderIds {
  let next = 1;
  let end = 1;
  let nextBlock: Promise<number> | undefined;

  const reserveNextBlock = () => {
    nextBlock ??= reserveBlock()
      .then((block) => firstIdOf(block, blockSize))
      .catch((error: unknown) => {
        nextBlock = undefined;
        throw error;
      });
    return nextBlock;
  };

  const takeFromNextBlock = async (): Promise<number> => {
    const awaitedBlock = reserveNextBlock();
    const first = await awaitedBlock;
    // Several calls may wait for the same block. The first one switches to it. For the later ones, it is already the
    // current block, or used up.
    if (awaitedBlock === nextBlock) {
      next = first;
      end = first + blockSize;
      nextBlock = undefined;
    }
    return take();
  };

  const take = (): number | Promise<number> => {
    if (next >= end) return takeFromNextBlock();
    if (end - next <= blockSize / 2 && nextBlock === undefined) reserveNextBlock().catch(() => {});
    return next++;
  };

  const drop = () => {
    end = next;
    nextBlock = undefined;
  };

  return { take, drop };
}

function firstIdOf(block: number, blockSize: number): number {
  const first = (block - 1) * blockSize + 1;
  if (!Number.isSafeInteger(block) || block < 1 || first + blockSize - 1 > serviceOrderIdMax) {
    throw new RangeError(`id block ${block} is outside 1 to 2^53 - 1`);
  }
  return first;
}
