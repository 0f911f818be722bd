import { fstatSync, writeFileSync } from 'node:fs';
import pino, { type DestinationStream, type Logger } from 'pino';

export type { Logger } from 'pino';

/**
 * Lines are written in chunks of this length, or after {@link writeEveryMs}, because one write per line would cost more
 * than a call.
 */
const chunkLength = 8_192;

const writeEveryMs = 100;

/** Bytes that may wait while standard output is not read; more are dropped, and the gateway keeps running. */
const bufferedBytesMax = 8_388_608;

/** How long an ending process waits for standard output to accept its lines. */
const flushTimeoutMs = 500;

/**
 * Creates a logger that writes one JSON object per line. No line contains credentials, a body or a customer's text. For
 * an error, a line contains the class and the stack. It contains the message, instead of the stack, only if the message
 * can't contain a value from a request. `mixin` returns further members of each line.
 */
export function createLogger(destination: DestinationStream, level = 'info', mixin?: () => object): Logger {
  const timestamp = pino.stdTimeFunctions.isoTime;
  const formatters = { level: (name: string) => ({ level: name }) };
  const options = { base: null, level, timestamp, formatters, serializers: { err: safeError } };
  return pino(mixin === undefined ? options : { ...options, mixin }, destination);
}

/** Resolves when the system has accepted every line, at the latest after {@link flushTimeoutMs}. */
export function flushLogger(logger: Logger): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, flushTimeoutMs);
    logger.flush(() => resolve());
  });
}

/**
 * Returns standard output, written in chunks. pino's own destination writes in a thread. A stopped reader blocks that
 * thread, which would keep the process from ending.
 */
export function standardOutput(): DestinationStream {
  return inChunks(createOutput(), (done) => process.stdout.write('', done));
}

/**
 * Returns the destination of a worker's log lines, which sends them to the primary process. If both processes wrote to
 * the same pipe, the system would interleave their lines whenever it is full (pipe(7), PIPE_BUF).
 */
export function primaryOutput(send: (lines: string, done: () => void) => void): DestinationStream {
  let waiting = 0;
  const output = (lines: string) => {
    // The primary process is gone.
    if (!process.connected) return void process.stdout.write(lines);
    if (waiting >= bufferedBytesMax) return;
    waiting += lines.length;
    send(lines, () => {
      waiting -= lines.length;
    });
  };
  return inChunks(output, (done) => (process.connected ? send('', done) : process.stdout.write('', done)));
}

function inChunks(output: (lines: string) => void, afterOutput: (done: () => void) => void) {
  let lines = '';
  const writeLines = () => {
    if (lines !== '') output(lines);
    lines = '';
  };
  setInterval(writeLines, writeEveryMs).unref();
  return {
    write(line: string) {
      lines += line;
      if (lines.length >= chunkLength) writeLines();
    },
    flush(done: () => void) {
      writeLines();
      afterOutput(done);
    },
  };
}

/**
 * Returns a function that writes lines to standard output. A failed write neither blocks nor ends the gateway. Lines
 * that standard output does not accept are lost, which is reported once.
 */
function createOutput(): (lines: string) => void {
  // If standard error is closed too, for example because the terminal was closed, there is no way to warn.
  process.stderr.on('error', () => {});
  let isReported = false;
  const reportLoss = (reason: unknown) => {
    if (!isReported) process.stderr.write(`log lines are lost: ${reason instanceof Error ? reason.message : reason}\n`);
    isReported = true;
  };
  // A file accepts lines again once its disk has space; Node.js's stream for a file does not.
  if (fstatSync(1).isFile()) {
    return (lines) => {
      try {
        writeFileSync(1, lines);
      } catch (error) {
        reportLoss(error);
      }
    };
  }
  process.stdout.on('error', reportLoss);
  return (lines) => {
    if (process.stdout.writableLength < bufferedBytesMax) process.stdout.write(lines);
    else reportLoss('standard output is not read');
  };
}

function safeError(error: unknown) {
  if (!(error instanceof Error)) return { type: typeof error };
  // The message names what the database rejected. The stack would only show the code that removes values from errors.
  if (error.name === 'DatabaseError') return { type: error.name, message: error.message };
  // Messages of other errors may contain values from a request.
  return { type: error.name, stack: error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) };
}
