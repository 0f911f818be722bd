import type { MerchantId } from '@gateway/domain/merchant';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLogger } from './logger.ts';
import { createRejectionLog } from './rejection-log.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('ten rejections of a client in a second get a line each, the others one together', () => {
  const lines: Record<string, unknown>[] = [];
  const isLogged = createRejectionLog(createLogger({ write: (line) => void lines.push(JSON.parse(line)) }));
  const reject = (count: number, code: 'overloaded' | 'rate_limited', id?: number) =>
    Array.from({ length: count }, () => isLogged(code, id as MerchantId | undefined)).filter(Boolean).length;
  expect([reject(500, 'overloaded', 1), reject(3, 'overloaded'), reject(12, 'rate_limited', 1)]).toEqual([10, 3, 10]);
  vi.advanceTimersByTime(1_000);
  expect(lines.map(({ level, msg, code, merchant_id, count }) => [level, msg, code, merchant_id, count])).toEqual([
    [50, 'more calls rejected', 'overloaded', 1, 490],
    [30, 'more calls rejected', 'rate_limited', 1, 2],
  ]);
  expect(reject(11, 'overloaded', 1)).toBe(10);
  vi.advanceTimersByTime(1_000);
  expect(lines).toHaveLength(3);
});
