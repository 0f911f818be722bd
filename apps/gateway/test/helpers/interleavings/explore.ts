import type { ExecuteStatement } from '@order-gateway/domain/testing/in-memory-order-store';

/** What happens to a statement, or to the process that made the last one. */
type Fault = 'loses the response' | 'fails' | 'crashes';

/** One step of a schedule: a task makes its next statement, or a fault. */
interface Choice {
  readonly task: number;
  readonly fault?: Fault;
}

/** The state of a task at the end of a schedule. */
interface Ran<Result> {
  /** The positions of its first statement and its end in the schedule; infinite if it crashed or never began. */
  readonly sentAt: number;
  readonly receivedAt: number;
  /** The clock at both. */
  readonly sentMs: number;
  readonly receivedMs: number;
  /** `undefined` if it crashed. */
  readonly result: Result | undefined;
}

/** What tasks share, made anew for each schedule. */
export interface World<Result> {
  /** The tasks. All that a task does depends on its results of `execute`, and on the clock. */
  readonly tasks: readonly (() => Promise<Result>)[];
  /** The number of tasks that can fail: the first ones. */
  readonly fallible: number;
  /** Milliseconds: the clock that tasks read. */
  readonly clock: () => number;
  /** A text that differs if anything differs that statements can see. */
  readonly contents: () => string;
  /** Called at the end of each schedule: throws an error if a promise is broken. */
  readonly check: (ran: readonly Ran<Result>[]) => void;
}

interface Task<Result> {
  readonly start: () => Promise<Result>;
  state: 'waiting' | 'running' | 'ended' | 'crashed';
  /** The tasks that had ended before it began. */
  before: readonly number[];
  /** What it has read so far. */
  seen: string;
  ran: Ran<Result>;
  /** Executes the statement at which it waits. */
  pending: ((fault: Fault | undefined) => void) | undefined;
}

/** The database did not respond, whether it executed the statement or not. */
export class NoResponse extends Error {}

/** What an exploration has covered. */
export interface Explored {
  /** Different states. */
  states: number;
  /** Schedules with a checked end. Every other schedule leads to a state that was already reached. */
  checked: number;
  /** Schedules that lead through these states. */
  schedules: number;
}

/** The longest schedule: more statements mean that a task does not end. */
const stepsMax = 100;

/**
 * Runs tasks in every order of their statements, with at most `faultsMax` faults: a lost response, a failed statement, a crash
 * after a statement. A state that was reached before is not continued again. Rejects with the schedule that breaks a promise.
 */
export async function exploreAll<Result>(
  open: (execute: ExecuteStatement) => Promise<World<Result>>,
  { faultsMax, faults = ['loses the response', 'crashes'] }: { readonly faultsMax: number; readonly faults?: Fault[] },
  /** Counts what is explored, together with earlier explorations. */
  explored: Explored = { states: 0, checked: 0, schedules: 0 },
): Promise<Explored> {
  const schedulesByKey = new Map<string, number>();
  const repeat = async (path: readonly Choice[]) => {
    const run = await startRun(open, faultsMax, faults);
    for (const choice of path) await run.take(choice);
    return run;
  };
  const visit = async (run: Run<Result>, path: readonly Choice[]): Promise<number> => {
    const key = run.key();
    const before = schedulesByKey.get(key);
    if (before !== undefined) return before;
    if (path.length > stepsMax) throw new Error(`the calls do not end after ${describe(path)}`);
    const choices = run.choices();
    let schedules = choices.length === 0 ? 1 : 0;
    if (choices.length === 0) {
      run.check(path);
      explored.checked += 1;
    }
    for (const [index, choice] of choices.entries()) {
      // The first choice continues this run, and each other one repeats it.
      const next = index === 0 ? run : await repeat(path);
      await next.take(choice);
      schedules += await visit(next, [...path, choice]);
    }
    explored.states += 1;
    schedulesByKey.set(key, schedules);
    return schedules;
  };
  explored.schedules += await visit(await repeat([]), []);
  return explored;
}

type Run<Result> = Awaited<ReturnType<typeof startRun<Result>>>;

async function startRun<Result>(
  open: (execute: ExecuteStatement) => Promise<World<Result>>,
  faultsMax: number,
  faults: readonly Fault[],
) {
  let current: Task<Result> | undefined;
  let [faultsLeft, position] = [faultsMax, 0];
  let failure: { readonly error: unknown } | undefined;
  /** Resolves when the current task waits at a statement or has ended. */
  let paused = () => {};
  const world = await open((name, statement) => {
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
    (start): Task<Result> => ({ start, state: 'waiting', before: [], seen: '', ran: never, pending: undefined }),
  );
  const untilPaused = async (resume: () => void) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    paused = resolve;
    resume();
    await promise;
  };
  const begin = (task: Task<Result>) => {
    const before = tasks.flatMap(({ state }, index) => (state === 'ended' ? [index] : []));
    Object.assign(task, { state: 'running', before, ran: { ...never, sentAt: position, sentMs: world.clock() } });
    return untilPaused(() => {
      const end = (result: Result | undefined) => {
        task.state = 'ended';
        task.ran = { ...task.ran, receivedAt: position, receivedMs: world.clock(), result };
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
      if (task.state === 'waiting') await begin(task);
      const { pending } = task;
      task.pending = undefined;
      if (pending !== undefined) await untilPaused(() => pending(fault));
      if (failure !== undefined) throw failure.error;
    },
    choices(): Choice[] {
      return tasks.flatMap(({ state }, task) => {
        if (state === 'ended' || state === 'crashed') return [];
        const possible = faults.filter((fault) => fault !== 'crashes' || state === 'running');
        const mayFail = faultsLeft > 0 && task < world.fallible;
        return [{ task }, ...(mayFail ? possible.map((fault) => ({ task, fault })) : [])];
      });
    },
    /** A text that is the same where the same can follow and be checked. */
    key(): string {
      const texts = tasks.map(({ state, before, seen, ran: { sentMs, receivedMs, result } }) => {
        const visible = state === 'ended' ? textOf([receivedMs, result]) : state === 'running' ? seen : '';
        return [state, before, sentMs, visible];
      });
      return JSON.stringify([world.contents(), world.clock(), faultsLeft, texts]);
    },
    check(path: readonly Choice[]): void {
      try {
        world.check(tasks.map(({ ran }) => ran));
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
