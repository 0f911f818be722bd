import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createRejectionPause } from './pause.ts';
import { noPeer } from './peers/connection-limit.ts';

const limits = { immediatePerSecond: 2, pauseMs: 100, pauseMaxMs: 101, pausedMax: 3 };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('rejections above the rate are delayed: the more wait, the longer, up to a maximum delay and number', async () => {
  const markIdle = vi.fn<() => void>();
  const pause = createRejectionPause(limits, Date.now);
  const sent: number[] = [];
  const reject = (number: number) => pause({ ...noPeer, markIdle }).then(() => sent.push(number));
  for (let number = 1; number <= 6; number += 1) void reject(number);
  await vi.advanceTimersByTimeAsync(limits.pauseMs - 1);
  expect(sent).toEqual([1, 2, 6]);
  expect(markIdle).toHaveBeenCalledTimes(4);
  await vi.advanceTimersByTimeAsync(1);
  expect(sent).toEqual([1, 2, 6, 3]);
  await vi.advanceTimersByTimeAsync(1);
  expect(sent).toEqual([1, 2, 6, 3, 4, 5]);
  await vi.advanceTimersByTimeAsync(1_000);
  void reject(7);
  await vi.advanceTimersByTimeAsync(0);
  expect(sent).toContain(7);
});
