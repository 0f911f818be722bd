import { expect, test } from 'vitest';
import { createLatencies } from './latencies.ts';
import { createProgress } from './progress.ts';

function counts() {
  return { sent: 0, done: 0, pending: 0, errors: 1, dropped: 0, latencies: createLatencies() };
}

test('a terminal gets one line that is rewritten, and a log gets a line every five seconds', () => {
  const written: string[] = [];
  const output = (isTTY: boolean) => ({ isTTY, write: (text: string) => written.push(text) });
  const terminal = createProgress(output(true), counts(), 2);
  terminal.update(500);
  terminal.update(1_000);
  terminal.end();
  expect(written.map((text) => text.slice(0, 5))).toEqual(['\r\u001b[2K', '\r\u001b[2K', '\n']);
  written.length = 0;
  const log = createProgress(output(false), counts(), 20);
  for (let elapsedMs = 500; elapsedMs <= 10_000; elapsedMs += 500) log.update(elapsedMs);
  log.end();
  expect(written.map((line) => line.split('  ')[0])).toEqual(['5 s of 20 s', '10 s of 20 s']);
});

test('the rates are those of the last second, regardless of how often the line is written', () => {
  const written: string[] = [];
  const now = counts();
  const progress = createProgress({ isTTY: true, write: (text: string) => written.push(text) }, now, 120);
  for (let elapsedMs = 500; elapsedMs <= 60_000; elapsedMs += 500) {
    now.sent += 100;
    // Every other update sees the responses of a second.
    if (elapsedMs % 1_000 === 0) now.done += 200;
    now.latencies.record(14);
    progress.update(elapsedMs);
  }
  for (const line of written.slice(2)) expect(line).toContain('200/s sent, 200/s done');
  expect(written.at(-1)).toContain('1 min 00 s of 2 min 00 s');
  expect(written.at(-1)).toContain('0 pending  1 errors  0 dropped  p50 14.0 ms');
});
