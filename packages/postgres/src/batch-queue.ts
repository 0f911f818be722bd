/** Limits are counts of items. */
export interface BatchQueueOptions<Slot, Item, Outcome> {
  /** What runs batches, each listed as often as it may have a batch in flight. */
  readonly slots: readonly Slot[];
  /** Items that leave at once if a slot is free; fewer wait for the end of the event loop's turn. Measured in decision 013. */
  readonly batchMin?: number;
  /** Items in one batch. */
  readonly batchMax: number;
  /** Items that may wait for a slot; any more are `overloaded` at once. */
  readonly waitingMax: number;
  /** Runs a batch: one outcome or error for each item, in the items' order. Must not reject. */
  readonly run: (slot: Slot, items: readonly Item[]) => Promise<readonly (Outcome | Error)[]>;
}

/** After so many batches of one item, each with nothing else in flight, the caller is assumed to be alone. */
const loneBatchesMin = 8;

/** A queue that runs its items in batches. */
export interface BatchQueue<Item, Outcome> {
  /** The item's outcome, or why there is none; settles within `timeoutMs`. Rejects with the error that `run` returned for it. */
  add(item: Item, timeoutMs: number): Promise<Outcome | 'overloaded' | 'deadline_exceeded'>;
  /** Resolves when nothing waits and nothing is in flight. */
  idle(): Promise<void>;
}

interface Entry<Item, Outcome> {
  readonly item: Item;
  /** Only the first call of either counts. */
  readonly resolve: (outcome: Outcome | 'deadline_exceeded') => void;
  readonly reject: (error: Error) => void;
  deadline: NodeJS.Timeout | undefined;
}

/**
 * Lets concurrent callers share one statement and its commit. There is no timer: a batch leaves as soon as a slot is free, at the
 * end of the event loop's current turn, so that a lone item leaves at once and items that arrive together leave together. If many
 * arrive in one turn, a first batch leaves during it, and the database works on it while the rest is still being read. An item of
 * a caller that has been alone for a while does not wait for the end of the turn either.
 */
export function createBatchQueue<Slot, Item, Outcome>(
  options: BatchQueueOptions<Slot, Item, Outcome>,
): BatchQueue<Item, Outcome> {
  const { slots, batchMin = 16, batchMax, waitingMax, run } = options;
  const freeSlots = [...slots];
  const waiting: Entry<Item, Outcome>[] = [];
  let flushIsScheduled = false;
  let loneBatches = 0;
  const idleCallbacks: (() => void)[] = [];

  const flush = () => {
    while (waiting.length > 0) {
      const slot = freeSlots.pop();
      if (slot === undefined) return;
      const batch = waiting.splice(0, batchMax);
      loneBatches = batch.length === 1 && freeSlots.length === slots.length - 1 ? loneBatches + 1 : 0;
      void runBatch(slot, batch);
    }
    if (freeSlots.length < slots.length) return;
    for (const callback of idleCallbacks.splice(0)) callback();
  };

  const flushAtEndOfTurn = () => {
    if (flushIsScheduled) return;
    flushIsScheduled = true;
    setImmediate(() => {
      flushIsScheduled = false;
      flush();
    });
  };

  const runBatch = async (slot: Slot, batch: readonly Entry<Item, Outcome>[]) => {
    const outcomes = await run(
      slot,
      batch.map(({ item }) => item),
    );
    batch.forEach(({ resolve, reject, deadline }, index) => {
      clearTimeout(deadline);
      const outcome = outcomes[index] ?? new Error('the batch returned no outcome for an item');
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome);
    });
    freeSlots.push(slot);
    flush();
  };

  const expire = (entry: Entry<Item, Outcome>) => {
    const index = waiting.indexOf(entry);
    if (index !== -1) waiting.splice(index, 1);
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
        const isAlone = loneBatches >= loneBatchesMin && freeSlots.length === slots.length;
        if (isAlone || waiting.length >= batchMin) flush();
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
