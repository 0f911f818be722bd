import pino, { type DestinationStream, type Logger } from 'pino';

export type { Logger } from 'pino';

/** Lines are written in chunks of this size, or after {@link writeEveryMs}: one write a line would cost more than a call. */
const chunkBytes = 8_192;

const writeEveryMs = 100;

/** Lines that may wait where nobody reads standard output; more are dropped, and the gateway goes on. */
const bufferedBytesMax = 8_388_608;

/** How long the end of the process waits for a reader of standard output. */
const flushTimeoutMs = 500;

/**
 * One JSON object a line. No line holds a header, a body or anything that a customer typed; of an error only its class, the
 * places in the code and, where it is known to hold no value of a request, its message.
 */
export function createLogger(destination: DestinationStream = standardOutput()): Logger {
  return pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: safeError } }, destination);
}

/** Resolves when the system has every line, or after a limit where it does not take them. */
export function flushLogger(logger: Logger): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, flushTimeoutMs);
    logger.flush(() => resolve());
  });
}

/** Standard output, which neither stops the gateway nor ends it: lines that it does not take are lost, which is said once. */
function standardOutput(): DestinationStream {
  const destination = pino.destination({
    dest: 1,
    sync: false,
    minLength: chunkBytes,
    periodicFlush: writeEveryMs,
    maxLength: bufferedBytesMax,
  });
  // Where standard error is gone too, as with a closed terminal, nobody can be warned.
  process.stderr.on('error', () => {});
  let isReported = false;
  const reportLoss = (reason: string) => {
    if (!isReported) process.stderr.write(`log lines are lost: ${reason}\n`);
    isReported = true;
  };
  destination.on('error', (error: Error) => reportLoss(error.message));
  destination.on('drop', () => reportLoss('nobody reads them'));
  return destination;
}

/** Messages of other errors may hold values of a request. */
const safeNames = new Set(['DatabaseFault']);

function safeError(error: unknown) {
  if (!(error instanceof Error)) return { type: typeof error };
  return {
    type: error.name,
    ...(safeNames.has(error.name) ? { message: error.message } : {}),
    stack: error.stack?.split('\n').filter((line) => /^\s+at /.test(line)),
  };
}
