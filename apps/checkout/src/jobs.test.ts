import pino from 'pino';
import { expect, test, vi } from 'vitest';
import { waitLimitMs } from '../../../tools/test-limits.ts';
import { startJobs } from './jobs.ts';

test('a job that hangs or fails delays no other job, and a stop waits for the current run', async () => {
  const lines: string[] = [];
  const { promise: hanging, resolve: endHanging } = Promise.withResolvers<void>();
  const failing = vi.fn(() => Promise.reject(new TypeError('the key rk_live_secret')));
  const jobs = startJobs(
    [
      { name: 'hangs', everyMs: 1, run: () => hanging },
      { name: 'fails', everyMs: 1, run: failing },
    ],
    pino({ base: null, timestamp: false }, { write: (line) => void lines.push(line) }),
  );
  await vi.waitUntil(() => failing.mock.calls.length > 1, waitLimitMs);
  const stopped = vi.fn();
  const stopping = jobs.stop().then(stopped);
  const runs = failing.mock.calls.length;
  await new Promise(setImmediate);
  expect(stopped).not.toHaveBeenCalled();
  endHanging();
  await stopping;
  expect(failing).toHaveBeenCalledTimes(runs);
  expect(JSON.parse(lines[0] ?? '')).toEqual({
    level: 40,
    job: 'fails',
    error: 'TypeError',
    msg: 'background job failed',
  });
});
