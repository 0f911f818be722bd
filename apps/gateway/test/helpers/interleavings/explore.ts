import type { ExecuteStatement } from '@order-gateway/domain/testing/in-memory-order-store';

/**
 * A fault of a task: its next statement fails or loses its response, or its process crashes before that statement.
 */
type Fault = 'loses the response' | 'fails' | 'crashes';

/** One step of a schedule: a task executes its next statement, or a fault of the task occurs. */
interface Choice {
  readonly task: number;
  readonly fault?: Fault;
}

/** The state of a task at the end of a schedule. */
interface TaskRun<Result> {
  /** The schedule positions of the task's start and its end. Infinite if it never started, or never ended. */
  readonly sentAt: number;
  readonly receivedAt: number;
  /** The clock's time at these two positions. */
  readonly sentMs: number;
  readonly receivedMs: number;
  /** `undefined` if it crashed. */
  readonly result: Result | undefined;
}

/** The state that tasks share. Each schedule gets a new one. */
export interface World<Result> {
  /** A task must depend only on the results of `execute` and on the clock. */
  readonly tasks: readonly (() => Promise<Result>)[];
  /** Only the first `fallibleCount` tasks can have faults. */
  readonly fallibleCount: number;
  /** The clock that tasks read, in milliseconds. */
  readonly clock: () => number;
  /** Serializes everything that statements can read. */
  readonly contents: () => string;
  /** Called at the end of each schedule. Throws an error if an invariant is violated. */
  readonly check: (taskRuns: readonly TaskRun<Result>[]) => void;
}

interface Task<Result> {
  readonly start: () => Promise<Result>;
  state: 'waiting' | 'running' | 'ended' | 'crashed';
  /** The indexes of the tasks that had ended before this one started. */
  endedBefore: readonly number[];
  /** The results that the task has read so far. */
  seen: string;
  taskRun: TaskRun<Result>;
  /** Executes the statement at which the task is paused, with the fault if there is one, and continues the task. */
  pending: ((fault: Fault | undefined) => void) | undefined;
}

/** Thrown when the database did not respond. It may or may not have executed the statement. */
export class NoResponse extends Error {}

export interface Explored {
  /** The number of distinct states. */
  states: number;
  /** The number of schedules checked at their end. Every other schedule leads to a state already explored. */
  checked: number;
  /** The number of schedules that these states allow. */
  schedules: number;
}

/** The maximum length of a schedule. A longer one means that a task does not end. */
const stepsMax = 100;

/**
 * Runs tasks in every order of their statements, with at most `faultsMax` faults. Explores each state once. Returns the
 * counts. Rejects if a schedule violates an invariant; the error lists the steps of the schedule.
 */
export async function exploreAll<Result>(
  createWorld: (execute: ExecuteStatement) => Promise<World<Result>>,
  { faultsMax, faults = ['loses the response', 'crashes'] }: { readonly faultsMax: number; readonly faults?: Fault[] },
  /** The counts of earlier explorations, to which this one adds. */
  explored: Explored = { states: 0, checked: 0, schedules: 0 },
): Promise<Explored> {
  const scheduleCountByKey = new Map<string, number>();
  const replay = async (path: readonly Choice[]) => {
    const run = await startRun(createWorld, faultsMax, faults);
    for (const choice of path) await run.take(choice);
    return run;
  };
  const visit = async (run: Run<Result>, path: readonly Choice[]): Promise<number> => {
    const key = run.key();
    const knownCount = scheduleCountByKey.get(key);
    if (knownCount !== undefined) return knownCount;
    if (path.length > stepsMax) throw new Error(`the calls do not end after ${describe(path)}`);
    const choices = run.choices();
    let schedules = choices.length === 0 ? 1 : 0;
    if (choices.length === 0) {
      run.check(path);
      explored.checked += 1;
    }
    for (const [index, choice] of choices.entries()) {
      // The first choice continues this run. Every other choice repeats the steps in a new run.
      const next = index === 0 ? run : await replay(path);
      await next.take(choice);
      schedules += await visit(next, [...path, choice]);
    }
    explored.states += 1;
    scheduleCountByKey.set(key, schedules);
    return schedules;
  };
  explored.schedules += await visit(await replay([]), []);
  return explored;
}

type Run<Result> = Awaited<ReturnType<typeof startRun<Result>>>;

async function startRun<Result>(
  createWorld: (execute: ExecuteStatement) => Promise<World<Result>>,
  faultsMax: number,
  faults: readonly Fault[],
) {
  let current: Task<Result> | undefined;
  let [faultsLeft, position] = [faultsMax, 0];
  let failure: { readonly error: unknown } | undefined;
  /** Called when the current task has reached a statement or has ended. */
  let paused = () => {};
  const world = await createWorld((name, statement) => {
    const task = current as Task<Result>;
    return new Promise((resolve, reject) => {
      task.pending = (fault) => {
        const result = fault === 'fails' ? undefined : statement();
        task.seen += `${name} ${fault ?? textOf(result)} ${world.clock()}\n`;
        if (fault === undefined) resolve(result as ReturnType<typeof statement>);
        else reject(new NoResponse());
      };
      paused();
    });
  });
  const never = { sentAt: Infinity, receivedAt: Infinity, sentMs: 0, receivedMs: 0, result: undefined };
  const tasks = world.tasks.map(
    (start): Task<Result> => ({
      start,
      state: 'waiting',
      endedBefore: [],
      seen: '',
      taskRun: never,
      pending: undefined,
    }),
  );
  const runUntilPaused = async (resume: () => void) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    paused = resolve;
    resume();
    await promise;
  };
  const startTask = (task: Task<Result>) => {
    const endedBefore = tasks.flatMap(({ state }, index) => (state === 'ended' ? [index] : []));
    const taskRun = { ...never, sentAt: position, sentMs: world.clock() };
    Object.assign(task, { state: 'running', endedBefore, taskRun });
    return runUntilPaused(() => {
      const end = (result: Result | undefined) => {
        task.state = 'ended';
        task.taskRun = { ...task.taskRun, receivedAt: position, receivedMs: world.clock(), result };
        paused();
      };
      task.start().then(end, (error: unknown) => {
        failure = { error };
        end(undefined);
      });
    });
  };
  return {
    async take({ task: index, fault }: Choice): Promise<void> {
      const task = tasks[index] as Task<Result>;
      current = task;
      position += 1;
      if (fault !== undefined) faultsLeft -= 1;
      if (fault === 'crashes') {
        task.state = 'crashed';
        return;
      }
      if (task.state === 'waiting') await startTask(task);
      const { pending } = task;
      task.pending = undefined;
      if (pending !== undefined) await runUntilPaused(() => pending(fault));
      if (failure !== undefined) throw failure.error;
    },
    choices(): Choice[] {
      return tasks.flatMap(({ state }, task) => {
        if (state === 'ended' || state === 'crashed') return [];
        const possible = faults.filter((fault) => fault !== 'crashes' || state === 'running');
        const mayFail = faultsLeft > 0 && task < world.fallibleCount;
        return [{ task }, ...(mayFail ? possible.map((fault) => ({ task, fault })) : [])];
      });
    },
    /** Identifies the state: runs with the same key have the same possible continuations and the same checks. */
    key(): string {
      const texts = tasks.map(({ state, endedBefore, seen, taskRun: { sentMs, receivedMs, result } }) => {
        const visible = state === 'ended' ? textOf([receivedMs, result]) : state === 'running' ? seen : '';
        return [state, endedBefore, sentMs, visible];
      });
      return JSON.stringify([world.contents(), world.clock(), faultsLeft, texts]);
    },
    check(path: readonly Choice[]): void {
      try {
        world.check(tasks.map(({ taskRun }) => taskRun));
      } catch (error) {
        throw new Error(`${error instanceof Error ? error.message : error}\nafter the steps ${describe(path)}`);
      }
    },
  };
}

function textOf(value: unknown): string {
  return JSON.stringify(value, (_, member) => (typeof member === 'bigint' ? String(member) : member));
}

function describe(path: readonly Choice[]): string {
  return path.map(({ task, fault }) => `${task + 1}${fault ? ` ${fault}` : ''}`).join(', ');
}
