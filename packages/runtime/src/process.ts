import { hostname, userInfo } from 'node:os';

/** An error that the user of the program can correct. The message has one line for each problem. */
export class StartError extends Error {
  override name = 'StartError';
}

/** An invalid argument. The program did nothing. */
export class UsageError extends StartError {
  override name = 'UsageError';
}

/** The exit code for a {@link UsageError}. Other errors exit with 1. */
export const usageExitCode = 2;

/** Returns the message of an error, for use in the message of a {@link StartError}; `unknown` if it is not an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown';
}

/** The user and host of the operating system, such as `alice@ops-1`: the default actor in the audit log. */
export function systemActor(): string {
  return `${userName()}@${hostname()}`;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // The id has no entry in the user database, which is common in containers.
    return `uid ${process.getuid?.()}`;
  }
}

/** The maximum duration of a graceful stop, in addition to its delay. After that, the process ends anyway. */
export const stopTimeoutMs = 4_800;

/**
 * Runs a program. An error that a user can correct is printed in plain lines, without a stack. Every error ends the
 * program with an exit code above 0.
 */
export async function run(program: () => Promise<unknown>): Promise<void> {
  try {
    await program();
  } catch (error) {
    process.stderr.write(`${describe(error)}\n`);
    process.exit(error instanceof UsageError ? usageExitCode : 1);
  }
}

/** Returns the text for an error that ends the program: the message if a user can correct it, otherwise the stack. */
export function describe(error: unknown): string {
  if (error instanceof StartError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/**
 * Stops the program gracefully and ends it. `delayMs` extends the time limit, because `stop` begins with this delay. If
 * `stop` exceeds the limit, reports that on standard error and exits with 1.
 */
export function stopAndExit(stop: () => Promise<void>, delayMs: number): void {
  const exit = () => {
    process.stderr.write(`The stop did not end within ${delayMs + stopTimeoutMs} ms, so the process ends now.\n`);
    process.exit(1);
  };
  setTimeout(exit, delayMs + stopTimeoutMs).unref();
  void run(stop).then(() => process.exit(0));
}

/**
 * Stops the program gracefully at the first signal; a second signal ends it immediately. SIGHUP, which a closing
 * terminal sends, calls `onHangUp` if that is given, and otherwise stops the program like the other signals. `delayMs`
 * is as in {@link stopAndExit}. Returns a function that stops the program unless it is already stopping. After that, a
 * first signal changes nothing, because the same event often causes both.
 */
export function onStopSignal(
  stop: () => Promise<void>,
  { delayMs = 0, onHangUp }: { readonly delayMs?: number; readonly onHangUp?: (() => void) | undefined } = {},
): () => void {
  let isStopping = false;
  const stopOnce = () => {
    if (isStopping) return;
    isStopping = true;
    stopAndExit(stop, delayMs);
  };
  let isSignalled = false;
  const handle = () => {
    if (isSignalled) process.exit(1);
    isSignalled = true;
    stopOnce();
  };
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, handle);
  process.on('SIGHUP', onHangUp ?? handle);
  return stopOnce;
}

/** Waits longer than this are announced. */
const announcedAfterMs = 1_000;

/**
 * If `work` takes longer than a second, prints a line that says what the program waits for. Returns the result of
 * `work`.
 */
export async function announceWait<Value>(awaited: string, work: Promise<Value>): Promise<Value> {
  const timer = setTimeout(() => process.stderr.write(`Waiting for ${awaited}.\n`), announcedAfterMs);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
