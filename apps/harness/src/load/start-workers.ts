import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { SecondPart } from './recorder.ts';
import type { FromWorker, ToWorker, WorkerTask } from './worker-messages.ts';

/** The sending processes of one run. */
export interface Workers {
  /** When the run begins, on the clock of `Date.now()`. */
  readonly startAtMs: number;
  /** Resolves when all have ended, with those that died. One that dies ends the run of all: the rest would be another run. */
  readonly ended: Promise<readonly Death[]>;
  /** Asks all to give up what is under way, tell what they counted, and end. Those that do not are killed. */
  stop(): Promise<void>;
}

/** A sending process that came to no orderly end. */
interface Death {
  readonly reason: string;
  /** Calls without an answer when it last told. */
  readonly underWay: number;
}

const workerFile = fileURLToPath(new URL('worker.ts', import.meta.url));

/** Reading fixtures and compiling takes a second here. */
const readyTimeoutMs = 30_000;
/** The run starts so long after all are ready, for the word to reach them all. */
const beginInMs = 100;
const stopTimeoutMs = 2_000;

/** Starts the sending processes and lets them begin at one moment. `onPart` gets what each counted, second by second. */
export async function startWorkers(
  task: Omit<WorkerTask, 'kind' | 'place'>,
  onPart: (part: SecondPart) => void,
): Promise<Workers> {
  const children = Array.from({ length: task.settings.workers }, () => fork(workerFile, { execArgv: [] }));
  const runs = children.map((child) => follow(child, onPart));
  const ended = Promise.all(runs.map((run) => run.ended)).then((deaths) =>
    deaths.filter((death) => death !== undefined),
  );
  const stop = async () => {
    for (const child of children) say(child, { kind: 'stop' });
    const patience = new AbortController();
    const tooLong = sleep(stopTimeoutMs, undefined, { signal: patience.signal }).catch(() => {});
    await Promise.race([ended, tooLong]);
    patience.abort();
    await endAll(children);
  };
  for (const run of runs) void run.ended.then((death) => death && stop());
  try {
    for (const [place, child] of children.entries()) say(child, { ...task, kind: 'task', place });
    await withinReadyTime(Promise.all(runs.map((run) => run.ready)));
    const startAtMs = Date.now() + beginInMs;
    for (const child of children) say(child, { kind: 'begin', startAtMs });
    return { startAtMs, ended: ended.finally(() => endAll(children)), stop };
  } catch (error) {
    await endAll(children);
    throw error;
  }
}

function say(child: ChildProcess, message: ToWorker): void {
  if (child.connected) child.send(message, () => {});
}

function follow(child: ChildProcess, onPart: (part: SecondPart) => void) {
  const ready = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Death | undefined>();
  let underWay = 0;
  let isDead = false;
  const die = (reason: string) => {
    isDead = true;
    ready.reject(new Error(`a sending process died: ${reason}`));
    ended.resolve({ reason, underWay });
  };
  child.on('message', (message: FromWorker) => {
    switch (message.kind) {
      case 'ready':
        return ready.resolve();
      case 'second':
        // What was under way at its death is counted already.
        if (isDead) return;
        underWay = message.part.underWay;
        return onPart(message.part);
      case 'ended':
        return ended.resolve(undefined);
      case 'failed':
        return die(message.reason);
    }
  });
  child.once('exit', (code, signal) =>
    die(signal === null ? `it ended with code ${code}` : `it was ended by ${signal}`),
  );
  child.once('error', (error) => die(error.message));
  return { ready: ready.promise, ended: ended.promise };
}

async function withinReadyTime(ready: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`a sending process was not ready in ${readyTimeoutMs} ms`)),
      readyTimeoutMs,
    );
  });
  try {
    await Promise.race([ready, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

async function endAll(children: readonly ChildProcess[]): Promise<void> {
  await Promise.all(
    children.map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
      const gone = once(child, 'exit');
      // Nothing of it is needed any more, and it ignores gentler signals.
      child.kill('SIGKILL');
      await gone;
    }),
  );
}
