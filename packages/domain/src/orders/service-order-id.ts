/** The largest integer that every JSON parser reads exactly: 2^53 - 1. */
export const serviceOrderIdMax = Number.MAX_SAFE_INTEGER;

/** Ids per reservation. At 10,000 orders per second, this makes one reservation per second. */
export const idBlockSize = 10_000;

/** Reserves the next block and returns its number, counted from 1. */
export type ReserveIdBlock = () => Promise<number>;

/** Assigns ids to new orders. */
export interface ServiceOrderIds {
  /**
   * Returns the next id, or a promise of it if the next block has to be reserved first. Rejects as the reservation
   * does.
   */
  take(): number | Promise<number>;
  /** Drops the rest of the block, because its ids are in use; the next id is from a new block. */
  drop(): void;
}

/**
 * Assigns service order ids from reserved blocks: positive, never the same twice in any number of processes, with gaps
 * where a process ended. Reserves the next block when half of the current one is used, so that calls rarely wait for
 * it.
 */
export function createServiceOrderIds(reserveBlock: ReserveIdBlock, blockSize = idBlockSize): ServiceOrderIds {
  let next = 1;
  let end = 1;
  let following: Promise<number> | undefined;

  const fetchFollowing = () => {
    following ??= reserveBlock()
      .then((block) => firstIdOf(block, blockSize))
      .catch((error: unknown) => {
        following = undefined;
        throw error;
      });
    return following;
  };

  const takeFromFollowing = async (): Promise<number> => {
    const awaited = fetchFollowing();
    const first = await awaited;
    // Several calls may wait for the same block. The first one switches to it; the later ones find it current or used
    // up.
    if (awaited === following) {
      next = first;
      end = first + blockSize;
      following = undefined;
    }
    return take();
  };

  const take = (): number | Promise<number> => {
    if (next >= end) return takeFromFollowing();
    if (end - next <= blockSize / 2 && following === undefined) fetchFollowing().catch(() => {});
    return next++;
  };

  const drop = () => {
    end = next;
    following = undefined;
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
