import { expect, test, vi } from 'vitest';
import { waitLimitMs } from '../../../tools/test-limits.ts';
import { repeatJobs } from './background-jobs.ts';

test('a job that left work runs again without a pause, and one that failed pauses', async () => {
  const outcomes = [{ isDone: false }, { isDone: false }, { isDone: true }];
  const run = vi.fn(async () => outcomes.shift() ?? { isDone: true });
  const fail = vi.fn(() => Promise.reject(new Error('broken')));
  const onFailure = vi.fn();
  const everyMs = 3_600_000;
  const jobs = repeatJobs(
    [
      { name: 'works', everyMs, run },
      { name: 'fails', everyMs, run: fail },
    ],
    onFailure,
  );
  await vi.waitUntil(() => outcomes.length === 0, waitLimitMs);
  await jobs.stop();
  expect([run, fail].map(({ mock }) => mock.calls.length)).toEqual([3, 1]);
  expect(onFailure.mock.calls).toEqual([['fails', new Error('broken')]]);
});
