import type { Meter } from '@opentelemetry/api';
import { createLogger } from '@order-gateway/runtime/logger';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { callRecorder, createCallLog, isServerError } from './call-record.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setUp() {
  const lines: Record<string, unknown>[] = [];
  const callLog = createCallLog(createLogger({ write: (line) => lines.push(JSON.parse(line)) }));
  const write = (times: number, code: string, fields: Partial<Parameters<typeof callLog.write>[0]> = {}) => {
    for (let count = 0; count < times; count += 1) callLog.write({ request_id: 'x', code, ...fields });
  };
  return { lines, write };
}

test('logs the first ten rejected calls per second of each account and code, and the number of the rest', () => {
  const { lines, write } = setUp();
  write(500, 'overloaded', { merchant_id: 1 });
  write(3, 'overloaded');
  write(12, 'rate_limited', { merchant_id: 1 });
  expect(lines.map(({ msg }) => msg)).toEqual(Array(23).fill('call'));
  vi.advanceTimersByTime(1_000);
  expect(
    lines.slice(23).map(({ level, msg, code, merchant_id, count }) => [level, msg, code, merchant_id, count]),
  ).toEqual([
    ['error', 'calls not logged', 'overloaded', 1, 490],
    ['info', 'calls not logged', 'rate_limited', 1, 2],
  ]);
  write(11, 'overloaded', { merchant_id: 1 });
  expect(lines).toHaveLength(35);
});

test('logs the first ten failed unauthenticated calls per second', () => {
  const { lines, write } = setUp();
  write(25, 'unauthenticated');
  vi.advanceTimersByTime(1_000);
  expect(lines).toHaveLength(11);
  expect(lines.at(-1)).toMatchObject({ msg: 'calls not logged', code: 'unauthenticated', count: 15 });
});

test('a poll that succeeds is not logged, and one that fails is', () => {
  const { lines, write } = setUp();
  write(1, 'ok', { checkout_id: 2, operation: 'ListRefunds' });
  write(1, 'unavailable', { checkout_id: 2, operation: 'ListRefunds' });
  write(1, 'ok', { checkout_id: 2, operation: 'RecordRefund' });
  expect(lines.map(({ operation, code }) => [operation, code])).toEqual([
    ['ListRefunds', 'unavailable'],
    ['RecordRefund', 'ok'],
  ]);
});

test('other calls of accounts, successes and bugs are always logged', () => {
  const { lines, write } = setUp();
  write(50, 'invalid_order', { merchant_id: 1 });
  write(50, 'payment_mismatch', { checkout_id: 2 });
  write(50, 'ok');
  write(50, 'internal');
  expect(lines).toHaveLength(200);
});

test.each([
  ['internal', true],
  ['unavailable', true],
  ['rate_limited', false],
  ['client_timeout', false],
])('%s is an error of the gateway: %s', (code, isError) => {
  expect(isServerError(code)).toBe(isError);
});

test('the duration of a call is recorded in seconds', () => {
  const record = vi.fn();
  const createHistogram = vi.fn(() => ({ record }));
  const labels = { protocol: 'json', operation: 'CreateOrder', code: 'created' } as const;
  callRecorder({ createHistogram } as unknown as Meter)(labels, 1_500);
  expect(createHistogram).toHaveBeenCalledExactlyOnceWith('order_gateway.call.duration.seconds', expect.anything());
  expect(record).toHaveBeenCalledExactlyOnceWith(1.5, labels);
});
