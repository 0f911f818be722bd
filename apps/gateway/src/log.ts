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
  flush(): void;
}

/** Lines of calls are written in pieces of this size, or after {@link writeEveryMs}: a write a line would cost more than a call. */
const pieceLength = 8_192;

const writeEveryMs = 100;

/** What may wait for a reader of standard output that has stopped; lines beyond it are lost, and the gateway goes on. */
const waitingBytesMax = 8_388_608;

/** One JSON object a line, on standard output. */
export function createLog(): Log {
  const destination = pino.destination({ fd: 1, sync: false, maxLength: waitingBytesMax });
  const logger = pino({ base: null, timestamp: pino.stdTimeFunctions.isoTime }, destination);
  // Lines are gathered here and not in the destination, which measures all that it holds anew with every line.
  let lines = '';
  const writeLines = () => {
    if (lines !== '') destination.write(lines);
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
      logger.error({ ...facts, error: name, reason: reasonOf(error), places }, message);
    },
    flush() {
      writeLines();
      destination.flushSync();
    },
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
function reasonOf(error: unknown): string | undefined {
  return error instanceof Error && error.name === 'StatementRefused' ? error.message : undefined;
}
