import type { AccountId } from '@order-gateway/domain/accounts';
import { createLogger, type Logger } from '@order-gateway/runtime/logger';
import type { Outcome, Protocol } from '../../src/calls/call.ts';

interface CallLine {
  readonly request_id: string;
  readonly protocol: Protocol;
  readonly remote_address?: string;
  readonly merchant_id?: AccountId;
  readonly order_id?: string;
  readonly service_order_id?: number;
  readonly order_status?: string;
  readonly operation: string;
  readonly code: Outcome;
  readonly http_status?: number;
  readonly grpc_status?: string;
  readonly fields?: readonly string[];
  readonly duration_ms: number;
  readonly level: string;
}

export interface MemoryLogger {
  readonly logger: Logger;
  readonly calls: CallLine[];
  /** Logged errors that are neither the outcome of a call nor in `outages`. */
  readonly errors: Readonly<Record<string, unknown>>[];
  readonly warnings: Readonly<Record<string, unknown>>[];
  /** Logged outages of the database. On a very busy machine, they happen although the database runs. */
  readonly outages: Readonly<Record<string, unknown>>[];
}

const outageMessages = ['database lost', 'not ready for orders'];

/** Creates a logger like the gateway's that writes to memory. */
export function createMemoryLogger(): MemoryLogger {
  const calls: CallLine[] = [];
  const errors: Record<string, unknown>[] = [];
  const warnings: Record<string, unknown>[] = [];
  const outages: Record<string, unknown>[] = [];
  const logger = createLogger({
    write(line) {
      const entry = JSON.parse(line);
      if (entry.msg === 'call') calls.push(entry);
      else if (outageMessages.includes(entry.msg)) outages.push(entry);
      else if (entry.level === 'warn') warnings.push(entry);
      else if (entry.level === 'error' && entry.msg !== 'calls not logged') errors.push(entry);
    },
  });
  return { logger, calls, errors, warnings, outages };
}
