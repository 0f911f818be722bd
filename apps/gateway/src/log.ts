import { fstatSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FailureCode } from '@gateway/domain/failure';
import { isoTime } from '@gateway/domain/iso-time';
import type { MerchantId } from '@gateway/domain/merchant';
import pino from 'pino';

export type Door = 'json' | 'connect' | 'grpc-web' | 'grpc';

/** What a log line tells of a call. This is all: no header, no body, nothing that a customer typed. */
export interface CallRecord {
  readonly request_id: string;
  readonly door: Door;
  readonly merchant_id: MerchantId | undefined;
  /**
   * `created`, `replayed` or `ok`, the machine code of the refusal, `unreadable` where an RPC's message was none, or `cancelled`
   * where the caller did not wait.
   */
  readonly code: FailureCode | 'created' | 'replayed' | 'ok' | 'unreadable' | 'cancelled';
  readonly duration_ms: number;
}

export interface Log {
  call(record: CallRecord): void;
  info(message: string, facts?: Readonly<Record<string, string | number | boolean>>): void;
  /** A fault of ours. Of the error only the class, the message and the places in our code are told. */
  fault(message: string, error: unknown, facts?: Readonly<Record<string, string | number>>): void;
  /** Resolves when the system has every line, or after {@link flushTimeoutMs} where it does not take them. */
  flush(): Promise<void>;
}

/** Lines of calls are written in pieces of this size, or after {@link writeEveryMs}: a write a line would cost more than a call. */
const pieceLength = 8_192;

const writeEveryMs = 100;

/** What may wait for a reader of standard output that has stopped; lines beyond it are lost, and the gateway goes on. */
const waitingBytesMax = 8_388_608;

/** How long the end of the process waits for a reader of standard output. */
const flushTimeoutMs = 500;

/** One JSON object a line, on standard output. */
export function createLog(): Log {
  const write = openOutput();
  const logger = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, { write });
  let lines = '';
  const writeLines = () => {
    if (lines !== '') write(lines);
    lines = '';
  };
  setInterval(writeLines, writeEveryMs).unref();
  return {
    call(record) {
      lines += callLine(record, Date.now());
      if (lines.length >= pieceLength) writeLines();
    },
    info(message, facts = {}) {
      writeLines();
      logger.info(facts, message);
    },
    fault(message, error, facts = {}) {
      writeLines();
      const { name, stack } = error instanceof Error ? error : { name: typeof error, stack: '' };
      const places = stack?.split('\n').filter((line) => /^\s+at /.test(line));
      logger.error({ ...facts, error: name, reason: tellableReason(error), places }, message);
    },
    async flush() {
      writeLines();
      const written = new Promise((resolve) => process.stdout.write('', resolve));
      await Promise.race([written, sleep(flushTimeoutMs)]);
    },
  };
}

/**
 * Standard output, which neither stops the gateway nor ends it: lines that it does not take are lost. That is told on standard
 * error, once. A file takes lines again when its disk has room; Node.js's stream of one would not.
 */
function openOutput(): (lines: string) => void {
  // Where standard error is gone too, as with a closed terminal, there is nobody to tell.
  process.stderr.on('error', () => {});
  let isTold = false;
  const lose = (error: unknown) => {
    if (!isTold) process.stderr.write(`log lines are lost: ${error instanceof Error ? error.message : error}\n`);
    isTold = true;
  };
  if (fstatSync(1).isFile()) {
    return (lines) => {
      try {
        writeFileSync(1, lines);
      } catch (error) {
        lose(error);
      }
    };
  }
  process.stdout.on('error', lose);
  return (lines) => {
    if (process.stdout.writableLength < waitingBytesMax) process.stdout.write(lines);
    else lose('nobody reads them');
  };
}

/**
 * The line that pino would write, put together by hand: it is written for every call, and pino's way there makes 5 KB of
 * garbage. No value needs escaping: ids are base62 or of the form in request-id.ts, the others are words of ours and numbers.
 */
function callLine({ request_id, door, merchant_id, code, duration_ms }: CallRecord, atMs: number): string {
  const merchant = merchant_id === undefined ? '' : `"merchant_id":${merchant_id},`;
  const duration = Math.round(duration_ms * 1_000) / 1_000;
  return `{"level":30,"time":"${isoTime(atMs)}","request_id":"${request_id}","door":"${door}",${merchant}"code":"${code}","duration_ms":${duration},"msg":"call"}\n`;
}

/** Only messages that are known to hold no value of a request are told. */
function tellableReason(error: unknown): string | undefined {
  return error instanceof Error && error.name === 'DatabaseFault' ? error.message : undefined;
}
