/** Bounds are counts of items. */
export interface GroupQueueOptions<Slot, Item, Outcome> {
  /** What carries groups out, each listed as often as it may have a group under way. */
  readonly slots: readonly Slot[];
  /** Items that leave at once where a slot is free; fewer wait for the end of the event loop's turn. Measured in decision 013. */
  readonly groupMin?: number;
  /** Items in one group. */
  readonly groupMax: number;
  /** Items that may wait for a slot; over it an item is refused at once. */
  readonly waitingMax: number;
  /** Carries a group out: one outcome or error for each item, in the items' order. Must not reject. */
  readonly run: (slot: Slot, items: readonly Item[]) => Promise<readonly (Outcome | Error)[]>;
}

/** After so many groups of one item, each with nothing else under way, a caller is taken to be alone. */
const loneGroupsMin = 8;

/** A queue that hands its items on in groups. */
export interface GroupQueue<Item, Outcome> {
  /** The item's outcome, or why there is none; settles within `timeoutMs`. Rejects with the error that `run` gave for it. */
  add(item: Item, timeoutMs: number): Promise<Outcome | 'overloaded' | 'deadline_exceeded'>;
  /** Resolves when nothing waits and nothing is under way. */
  idle(): Promise<void>;
}

interface Entry<Item, Outcome> {
  readonly item: Item;
  /** The caller's; only the first answer counts. */
  readonly resolve: (outcome: Outcome | 'deadline_exceeded') => void;
  readonly reject: (error: Error) => void;
  deadline: NodeJS.Timeout | undefined;
}

/**
 * Lets concurrent callers share one statement and its commit. There is no timer: a group leaves as soon as a slot is free, at
 * the end of the event loop's current turn, so that a lone item goes at once and those that arrive together go together. Where
 * many arrive in one turn, a first part leaves during it: the database works on that part while the rest is still being read.
 * Nor does the item of a caller who has been alone for a while wait for the end of the turn, as nobody comes along.
 */
export function createGroupQueue<Slot, Item, Outcome>(
  options: GroupQueueOptions<Slot, Item, Outcome>,
): GroupQueue<Item, Outcome> {
  const { slots, groupMin = 16, groupMax, waitingMax, run } = options;
  const freeSlots = [...slots];
  const waiting: Entry<Item, Outcome>[] = [];
  let flushIsDue = false;
  let loneGroups = 0;
  const idleCallbacks: (() => void)[] = [];

  const flush = () => {
    while (waiting.length > 0) {
      const slot = freeSlots.pop();
      if (slot === undefined) return;
      const group = waiting.splice(0, groupMax);
      loneGroups = group.length === 1 && freeSlots.length === slots.length - 1 ? loneGroups + 1 : 0;
      void carryOut(slot, group);
    }
    if (freeSlots.length < slots.length) return;
    for (const callback of idleCallbacks.splice(0)) callback();
  };

  const flushAtEndOfTurn = () => {
    if (flushIsDue) return;
    flushIsDue = true;
    setImmediate(() => {
      flushIsDue = false;
      flush();
    });
  };

  const carryOut = async (slot: Slot, group: readonly Entry<Item, Outcome>[]) => {
    const outcomes = await run(
      slot,
      group.map(({ item }) => item),
    );
    group.forEach(({ resolve, reject, deadline }, index) => {
      clearTimeout(deadline);
      const outcome = outcomes[index] ?? new Error('the group gave no outcome for an item');
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome);
    });
    freeSlots.push(slot);
    flush();
  };

  const expire = (entry: Entry<Item, Outcome>) => {
    const place = waiting.indexOf(entry);
    if (place !== -1) waiting.splice(place, 1);
    entry.resolve('deadline_exceeded');
  };

  return {
    add(item, timeoutMs) {
      if (timeoutMs <= 0) return Promise.resolve('deadline_exceeded');
      if (waiting.length >= waitingMax) return Promise.resolve('overloaded');
      return new Promise((resolve, reject) => {
        const entry: Entry<Item, Outcome> = { item, resolve, reject, deadline: undefined };
        entry.deadline = setTimeout(expire, timeoutMs, entry);
        waiting.push(entry);
        const isAlone = loneGroups >= loneGroupsMin && freeSlots.length === slots.length;
        if (isAlone || waiting.length >= groupMin) flush();
        else flushAtEndOfTurn();
      });
    },
    idle() {
      return new Promise((resolve) => {
        idleCallbacks.push(resolve);
        flushAtEndOfTurn();
      });
    },
  };
}
