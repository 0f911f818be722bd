/** Something outside the program prevents its start; the message says what, in one line for each problem. */
export class StartError extends Error {
  override name = 'StartError';
}

/** An argument is wrong, so nothing was done. */
export class UsageError extends StartError {
  override name = 'UsageError';
}

/** The exit code of a {@link UsageError}; that of other errors is 1. */
export const usageExitCode = 2;

/** The message of an error, for the sentence of a {@link StartError}. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown';
}

/** The longest that an orderly stop may take before the process ends anyway, beside the time that it waits by itself. */
export const stopTimeoutMs = 4_800;

/** Runs a program. What a user can correct is written in plain lines, without a stack, and ends it with an exit code above 0. */
export async function run(program: () => Promise<unknown>): Promise<void> {
  try {
    await program();
  } catch (error) {
    process.stderr.write(`${describe(error)}\n`);
    process.exit(error instanceof UsageError ? usageExitCode : 1);
  }
}

/** What is written of an error that ends the program: a line for the user, or the stack of a bug. */
export function describe(error: unknown): string {
  if (error instanceof StartError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Stops the program in an orderly way and ends it. `delayMs` is how long the stop waits before it begins. */
export function stopAndExit(stop: () => Promise<void>, delayMs: number): void {
  setTimeout(() => process.exit(1), delayMs + stopTimeoutMs).unref();
  void run(stop).then(() => process.exit(0));
}

/**
 * Stops the program in an orderly way at the first signal; a second one ends it at once. SIGHUP, sent by a terminal that is closed,
 * stops it too where nothing else is to be done at it. `delayMs` is as in {@link stopAndExit}.
 */
export function onStopSignal(
  stop: () => Promise<void>,
  { delayMs = 0, onHangUp }: { readonly delayMs?: number; readonly onHangUp?: (() => void) | undefined } = {},
): void {
  let stopping = false;
  const handle = () => {
    if (stopping) process.exit(1);
    stopping = true;
    stopAndExit(stop, delayMs);
  };
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, handle);
  process.on('SIGHUP', onHangUp ?? handle);
}
