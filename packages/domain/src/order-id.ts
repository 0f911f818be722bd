/** The greatest integer that every JSON reader holds exactly: 2^53 - 1. */
export const serviceOrderIdMax = Number.MAX_SAFE_INTEGER;

/** How many ids a process takes from the database at once: at 10,000 orders a second, one reservation a second. */
export const idBlockSize = 10_000;

/** Why no block could be reserved: the storage could not be reached, or has no room for another connection. */
export type NoIdBlock = 'unavailable' | 'overloaded';

/** Reserves the next block for this process alone and gives its number, counted from 1. Rejects only for bugs. */
export type ReserveIdBlock = () => Promise<number | NoIdBlock>;

/** Where new orders get their ids. */
export interface ServiceOrderIds {
  /** The next id: at once while the block lasts, else when the next block is there. Rejects only for bugs. */
  take(): number | Promise<number | NoIdBlock>;
}

/**
 * Hands out service order ids from reserved blocks: positive, never twice over any number of processes, with gaps where a
 * process ended. The next block is fetched when half of the current one is used, so that hardly any call waits for it.
 */
export function createServiceOrderIds(reserveBlock: ReserveIdBlock, blockSize = idBlockSize): ServiceOrderIds {
  let next = 1;
  let end = 1;
  let following: Promise<number | NoIdBlock> | undefined;

  const fetchFollowing = () => {
    following ??= reserveBlock()
      .then((block) => {
        if (typeof block === 'number') return firstIdOf(block, blockSize);
        following = undefined;
        return block;
      })
      .catch((error: unknown) => {
        following = undefined;
        throw error;
      });
    return following;
  };

  const takeFromFollowing = async (): Promise<number | NoIdBlock> => {
    const awaited = fetchFollowing();
    const first = await awaited;
    if (typeof first !== 'number') return first;
    // Many may have waited for the same block: the first of them puts it in place, once; the others find it there, or used up.
    if (awaited === following) {
      next = first;
      end = first + blockSize;
      following = undefined;
    }
    return take();
  };

  const take = (): number | Promise<number | NoIdBlock> => {
    if (next >= end) return takeFromFollowing();
    if (end - next <= blockSize / 2 && following === undefined) fetchFollowing().catch(() => {});
    return next++;
  };

  return { take };
}

function firstIdOf(block: number, blockSize: number): number {
  const first = (block - 1) * blockSize + 1;
  if (!Number.isSafeInteger(block) || block < 1 || first + blockSize - 1 > serviceOrderIdMax) {
    throw new RangeError(`id block ${block} lies outside 1 to 2^53 - 1`);
  }
  return first;
}
