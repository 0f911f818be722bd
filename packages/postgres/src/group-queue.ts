export interface GroupQueueOptions<Slot, Item, Outcome> {
  /** What carries a group out, one group at a time. */
  readonly slots: readonly Slot[];
  /** Items in one group. */
  readonly groupMax: number;
  /** Items that may wait for a slot; over it an item is refused at once. */
  readonly waitingMax: number;
  /** Carries a group out: one outcome or error for each item, in the items' order. Must not reject. */
  readonly run: (slot: Slot, items: readonly Item[]) => Promise<readonly (Outcome | Error)[]>;
}

export interface GroupQueue<Item, Outcome> {
  /** The item's outcome, or why there is none; settles within `timeoutMs`. Rejects with the error that `run` gave for it. */
  add(item: Item, timeoutMs: number): Promise<Outcome | 'overloaded' | 'deadline_exceeded'>;
  /** Resolves when nothing waits and nothing is under way. */
  idle(): Promise<void>;
}

interface Entry<Item, Outcome> {
  readonly item: Item;
  /** Answers the caller; only the first answer counts. */
  readonly settle: (outcome: Outcome | 'deadline_exceeded' | Error) => void;
}

/**
 * Lets concurrent callers share one statement and its commit. There is no timer: a group leaves as soon as a slot is free, at
 * the end of the event loop's current turn, so that a lone item goes at once and those that arrive together go together.
 */
export function createGroupQueue<Slot, Item, Outcome>(
  options: GroupQueueOptions<Slot, Item, Outcome>,
): GroupQueue<Item, Outcome> {
  const { slots, groupMax, waitingMax, run } = options;
  const freeSlots = [...slots];
  const waiting: Entry<Item, Outcome>[] = [];
  let flushIsDue = false;
  const idleCallbacks: (() => void)[] = [];

  const flush = () => {
    flushIsDue = false;
    while (waiting.length > 0) {
      const slot = freeSlots.pop();
      if (slot === undefined) return;
      void carryOut(slot, waiting.splice(0, groupMax));
    }
    if (freeSlots.length < slots.length) return;
    for (const callback of idleCallbacks.splice(0)) callback();
  };

  const flushAtEndOfTurn = () => {
    if (!flushIsDue) setImmediate(flush);
    flushIsDue = true;
  };

  const carryOut = async (slot: Slot, group: readonly Entry<Item, Outcome>[]) => {
    const outcomes = await run(
      slot,
      group.map(({ item }) => item),
    );
    group.forEach(({ settle }, index) => {
      settle(outcomes[index] ?? new Error('the group gave no outcome for an item'));
    });
    freeSlots.push(slot);
    flush();
  };

  return {
    add(item, timeoutMs) {
      if (waiting.length >= waitingMax) return Promise.resolve('overloaded');
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          const place = waiting.indexOf(entry);
          if (place !== -1) waiting.splice(place, 1);
          resolve('deadline_exceeded');
        }, timeoutMs);
        const entry: Entry<Item, Outcome> = {
          item,
          settle(outcome) {
            clearTimeout(timer);
            if (outcome instanceof Error) reject(outcome);
            else resolve(outcome);
          },
        };
        waiting.push(entry);
        flushAtEndOfTurn();
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
