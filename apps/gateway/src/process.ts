import { ConfigError } from './config.ts';

/** Something outside the program prevents its start; the message is one sentence that says what. */
export class StartError extends Error {
  override name = 'StartError';
}

/** The message of an error, for the sentence of a {@link StartError}. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unknown';
}

/** The longest that an orderly stop may take before the process ends anyway, beside the time that it waits by itself. */
const stopTimeoutMs = 4_800;

/** Runs a program. What a user can correct is written in plain lines, without a stack, and ends it with exit code 1. */
export async function run(program: () => Promise<void>): Promise<void> {
  try {
    await program();
  } catch (error) {
    process.stderr.write(`${describe(error)}\n`);
    process.exit(1);
  }
}

function describe(error: unknown): string {
  if (error instanceof ConfigError || error instanceof StartError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/**
 * Stops the program in an orderly way at the first signal; a second one ends it at once. SIGHUP: the terminal was closed.
 * `delayMs` is how long the stop waits before it begins.
 */
export function onStopSignal(stop: () => Promise<void>, delayMs = 0): void {
  let stopping = false;
  const handle = () => {
    if (stopping) process.exit(1);
    stopping = true;
    setTimeout(() => process.exit(1), delayMs + stopTimeoutMs).unref();
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        process.stderr.write(`${describe(error)}\n`);
        process.exit(1);
      },
    );
  };
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, handle);
}
