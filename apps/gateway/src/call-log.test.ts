import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Outcome } from './call.ts';
import { createCallLog } from './call-log.ts';
import { createLogger } from './logger.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setUp() {
  const lines: Record<string, unknown>[] = [];
  const callLog = createCallLog(createLogger({ write: (line) => lines.push(JSON.parse(line)) }));
  const write = (code: Outcome, more: { merchant_id?: number } = {}) =>
    callLog.write({ request_id: 'x', protocol: 'json', code, duration_ms: 1, ...more }, 'info');
  return { lines, write };
}

test('of failed anonymous calls the first few a second are logged, and the number of the others by code', () => {
  const { lines, write } = setUp();
  for (let count = 0; count < 30; count += 1) write(count < 25 ? 'unauthenticated' : 'not_found');
  expect(lines.map(({ msg }) => msg)).toEqual(Array(20).fill('call'));
  vi.advanceTimersByTime(1_000);
  expect(lines.slice(20)).toMatchObject([{ msg: 'calls not logged', calls: { unauthenticated: 5, not_found: 5 } }]);
  write('not_found');
  vi.advanceTimersByTime(1_000);
  expect(lines.slice(21)).toMatchObject([{ msg: 'call', code: 'not_found' }]);
});

test('calls of clients, successes and bugs are always logged', () => {
  const { lines, write } = setUp();
  for (let count = 0; count < 50; count += 1) {
    write('rate_limited', { merchant_id: 1 });
    write('ok');
    write('internal');
  }
  expect(lines).toHaveLength(150);
});
