import type { Meter, SpanContext } from '@opentelemetry/api';
import type { StoreFailure } from '@order-gateway/domain/result';
import { failsWithAnyValues, redact, statementFailure } from '../connections/errors.ts';
import { queueTelemetry } from './queue-telemetry.ts';

/** The options of a queue. Limits are numbers of items. */
export interface BatchQueueOptions<Client, Item, Outcome> {
  /** Names the queue in metrics and traces. */
  readonly name: string;
  /** Its number is added to the name, if each server has such a queue. */
  readonly server?: { readonly number: number } | undefined;
  /** Absent: no metrics. */
  readonly meter?: Meter | undefined;
  /** The clients that run batches, each listed once per batch that it may have in flight. Closed with the queue. */
  readonly clients: readonly Client[];
  /**
   * If a client is free, this many items are sent immediately. Fewer items wait for the end of the event loop's turn
   * (docs/decisions/013-batches.md).
   */
  readonly batchMin?: number;
  /** The maximum number of items in one batch. Absent: each item has its own statement. */
  readonly batchMax?: number;
  /** The maximum number of items that wait for a client; further items are immediately `overloaded`. */
  readonly waitingMax: number;
  /**
   * Returns the owner of an item. While not all items fit into a batch, the owners take turns, so that an item waits
   * for only a few items of each other owner, regardless of how many are waiting. Absent: oldest first.
   */
  readonly ownerOf?: (item: Item) => unknown;
  /** Runs a batch in one statement. Returns one outcome or error per item, in the items' order. */
  readonly run: (client: Client, items: readonly Item[]) => Promise<readonly (Outcome | Error)[]>;
}

/** After this many batches of one item, each with nothing else in flight, the caller is assumed to be the only one. */
const loneBatchesMin = 8;

/** A queue that runs its items in batches. */
export interface BatchQueue<Item, Outcome> {
  /** Resolves to the item's outcome within `timeoutMs`. Rejects with an error without values. */
  add(item: Item, timeoutMs: number): Promise<Outcome | StoreFailure>;
  /** Milliseconds since the oldest item without an outcome was added; 0 if there is none. */
  oldestMs(): number;
  /** Closes the clients when no item is waiting or in flight. */
  close(): Promise<void>;
}

interface Entry<Item, Outcome> {
  readonly item: Item;
  /** Only the first call of `resolve` or `reject` has an effect. */
  readonly resolve: (outcome: Outcome | StoreFailure) => void;
  readonly reject: (error: Error) => void;
  readonly deadline: NodeJS.Timeout;
  readonly addedAtMs: number;
  readonly spanOfCall: SpanContext | undefined;
}

/**
 * Lets concurrent calls share one statement and its commit. There is no timer: a batch is sent as soon as a client is
 * free, at the end of the event loop's current turn. So a lone item is sent immediately, and items that arrive together
 * are sent together. If many arrive in one turn, a first batch is sent during the turn, and the database works on it
 * while the remaining items are still being read. If a caller has been the only one for a while, its items do not wait
 * for the end of the turn either.
 */
export function createBatchQueue<Client extends { close(): Promise<void> }, Item, Outcome>(
  options: BatchQueueOptions<Client, Item, Outcome>,
): BatchQueue<Item, Outcome> {
  const { name, server, meter, clients, batchMin = 16, run } = options;
  const telemetry = queueTelemetry(server === undefined ? name : `${name} ${server.number}`, meter);
  const free = [...clients];
  const waiting: Entry<Item, Outcome>[] = [];
  const turns = createTurns(waiting, options);
  /** The batches in flight, oldest first. */
  const running = new Set<readonly Entry<Item, Outcome>[]>();
  let flushIsScheduled = false;
  let loneBatches = 0;
  const idle = Promise.withResolvers<void>();
  let isClosing = false;

  const flush = () => {
    while (waiting.length > 0) {
      const client = free.pop();
      if (client === undefined) return;
      const batch = turns.takeBatch();
      loneBatches = batch.length === 1 && free.length === clients.length - 1 ? loneBatches + 1 : 0;
      void runBatch(client, batch);
    }
    if (free.length < clients.length) return;
    turns.reset();
    if (isClosing) idle.resolve();
  };

  const flushAtEndOfTurn = () => {
    if (flushIsScheduled) return;
    flushIsScheduled = true;
    setImmediate(() => {
      flushIsScheduled = false;
      flush();
    });
  };

  const runBatch = async (client: Client, batch: readonly Entry<Item, Outcome>[]) => {
    const items = batch.map(({ item }) => item);
    running.add(batch);
    const calls = batch.flatMap(({ spanOfCall }) => spanOfCall ?? []);
    const outcomes = await telemetry.runBatch(items.length, calls, () => runItems(run, client, items), hasFailed);
    running.delete(batch);
    batch.forEach(({ resolve, reject, deadline }, index) => {
      clearTimeout(deadline);
      const outcome = outcomes[index] ?? new Error('the batch returned no outcome for an item');
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome);
    });
    free.push(client);
    flush();
  };

  const ageOf = (entry: Entry<Item, Outcome> | undefined) =>
    entry === undefined ? 0 : performance.now() - entry.addedAtMs;
  const oldestMs = () => {
    const [oldestBatch = []] = running;
    return Math.max(ageOf(oldestBatch[0]), ageOf(waiting[0]));
  };

  const connections = [...new Set(clients)];
  const slotsOf = (client: Client, slots: readonly Client[]) => slots.filter((slot) => slot === client).length;
  telemetry.observe(() => ({
    waiting: waiting.length,
    connections: connections.length,
    usedConnections: connections.filter((client) => slotsOf(client, free) < slotsOf(client, clients)).length,
  }));
  return {
    oldestMs,
    add(item, timeoutMs) {
      if (timeoutMs <= 0) return Promise.resolve({ kind: 'deadline_exceeded' });
      // The item would be too late if it waited as long as the oldest one of its owner already has.
      const isTooLate = waiting.length > 0 && timeoutMs < oldestMs() && timeoutMs < ageOf(turns.oldestOf(item));
      if (isTooLate || !turns.hasCapacity(item)) return Promise.resolve({ kind: 'overloaded' });
      return new Promise((resolve, reject) => {
        const deadline = setTimeout(() => {
          const index = waiting.indexOf(entry);
          if (index !== -1) waiting.splice(index, 1);
          resolve({ kind: 'deadline_exceeded' });
        }, timeoutMs);
        const entry: Entry<Item, Outcome> = {
          item,
          resolve,
          reject,
          deadline,
          addedAtMs: performance.now(),
          spanOfCall: telemetry.spanOfCall(),
        };
        waiting.push(entry);
        const isAlone = loneBatches >= loneBatchesMin && free.length === clients.length;
        if (isAlone || waiting.length >= batchMin) flush();
        else flushAtEndOfTurn();
      });
    },
    async close() {
      isClosing = true;
      flushAtEndOfTurn();
      await idle.promise;
      await Promise.all(connections.map((client) => client.close()));
    },
  };
}

/**
 * Runs the items in one statement. If the database rejects it, its halves run one after the other, so that one item
 * does not make the other items fail.
 */
async function runItems<Client, Item, Outcome>(
  run: BatchQueueOptions<Client, Item, Outcome>['run'],
  client: Client,
  items: readonly Item[],
): Promise<readonly (Outcome | StoreFailure | Error)[]> {
  try {
    return await run(client, items);
  } catch (error) {
    const kind = statementFailure(error);
    if (kind !== undefined) return items.map(() => ({ kind }));
    if (items.length === 1 || failsWithAnyValues(error)) return items.map(() => redact(error));
    const half = Math.ceil(items.length / 2);
    return [
      ...(await runItems(run, client, items.slice(0, half))),
      ...(await runItems(run, client, items.slice(half))),
    ];
  }
}

/** Whether the database failed for an item: its outcome is an error, `unavailable` or `overloaded`. */
function hasFailed(outcomes: readonly unknown[]): boolean {
  return outcomes.some(
    (outcome) => outcome instanceof Error || ['unavailable', 'overloaded'].includes(Object(outcome).kind),
  );
}

/**
 * Decides which of the waiting items are next, and whether another item may wait. The next turn belongs to the owner
 * whose latest turn was the longest ago.
 */
function createTurns<Client, Item, Outcome>(
  waiting: Entry<Item, Outcome>[],
  { batchMax = 1, waitingMax, ownerOf = () => undefined }: BatchQueueOptions<Client, Item, Outcome>,
) {
  /** The latest turn of each owner since the queue was idle. */
  const latestTurns = new Map<unknown, number>();
  let turn = 0;
  const turnOf = (owner: unknown) => latestTurns.get(owner) ?? 0;
  const groupsByOwner = () => Map.groupBy(waiting, ({ item }) => ownerOf(item));
  return {
    /** Takes the items of the next batch; the remaining items keep their order. */
    takeBatch(): Entry<Item, Outcome>[] {
      const isShared = waiting.length > batchMax;
      const groups = isShared
        ? [...groupsByOwner()].toSorted(([a], [b]) => turnOf(a) - turnOf(b)).map(([, group]) => group)
        : [waiting];
      const batch = inTurn(groups).slice(0, batchMax);
      const taken = new Set(batch);
      waiting.splice(0, waiting.length, ...waiting.filter((entry) => !taken.has(entry)));
      turn += 1;
      for (const { item } of batch) latestTurns.set(ownerOf(item), turn);
      return batch;
    },
    /** Returns the oldest waiting item with the same owner. */
    oldestOf: (item: Item) => waiting.find((entry) => ownerOf(entry.item) === ownerOf(item)),
    /**
     * Whether an item may wait. When the queue is full, it still admits the items of owners that have less than an
     * equal share of it, up to twice its limit.
     */
    hasCapacity(item: Item): boolean {
      if (waiting.length < waitingMax) return true;
      const groups = groupsByOwner();
      const ofOwner = groups.get(ownerOf(item))?.length ?? 0;
      const owners = groups.size + (ofOwner === 0 ? 1 : 0);
      return ofOwner < waitingMax / owners && waiting.length < 2 * waitingMax;
    },
    reset: () => latestTurns.clear(),
  };
}

/** Returns the first element of each group, then the second of each group that has one, and so on. */
function inTurn<Element>(groups: readonly Element[][]): Element[] {
  const turns: Element[][] = [];
  for (const group of groups) {
    group.forEach((element, turn) => {
      turns[turn] ??= [];
      turns[turn].push(element);
    });
  }
  return turns.flat();
}
