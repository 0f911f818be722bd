/** The largest integer that every JSON parser reads exactly: 2^53 - 1. */
export const serviceOrderIdMax = Number.MAX_SAFE_INTEGER;

/** Ids that a process reserves at once: one reservation a second at 10,000 orders a second. */
export const idBlockSize = 10_000;

/** Why no block was reserved: the database was not reachable, or accepted no more connections. */
export type NoIdBlock = 'unavailable' | 'overloaded';

/** Reserves the next block for this process and returns its number, counted from 1. Rejects only because of a bug. */
export type ReserveIdBlock = () => Promise<number | NoIdBlock>;

/** Assigns ids to new orders. */
export interface ServiceOrderIds {
  /** Returns the next id, or a promise of it if the next block has to be reserved first. Rejects only because of a bug. */
  take(): number | Promise<number | NoIdBlock>;
}

/**
 * Assigns service order ids from reserved blocks: positive, never the same twice in any number of processes, with gaps where a
 * process ended. Reserves the next block when half of the current one is used, so that calls rarely wait for it.
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
    // Several calls may wait for the same block. The first one switches to it; for the others it is current, or used up.
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
    throw new RangeError(`id block ${block} is outside 1 to 2^53 - 1`);
  }
  return first;
}
