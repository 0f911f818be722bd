import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readJournal } from '../audit/parse-journal.ts';
import { openJournal, startJournal } from './journal.ts';
import type { LoadCall } from './make-calls.ts';
import { createRecorder } from './recorder.ts';
import { createTotals } from './totals.ts';

function call(number: number): LoadCall {
  const order = { merchant: 0, orderId: `load-1-${number}`, amount: '10.00' };
  const sent = { path: '/order', headers: {}, body: new Uint8Array() };
  return { number, door: 'json', ...sent, order, expected: ['created', 'replayed'] };
}

function acknowledged(number: number) {
  return {
    outcome: 'created',
    acknowledged: { orderId: `load-1-${number}`, serviceOrderId: number, orderToken: `t${number}` },
  };
}

function scratchFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'journal-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'journal.ndjson');
}

test('an acknowledgement that the journal did not take is not counted', () => {
  let written = 0;
  let full = true;
  const recorder = createRecorder({
    write: (entries) => {
      if (full) throw new Error('the disk is full');
      written += entries.length;
    },
  });
  const totals = createTotals();
  const answer = (number: number) => {
    recorder.sent(0);
    recorder.answered(call(number), acknowledged(number), 5);
  };
  answer(1);
  expect(() => recorder.closeSecond(0)).toThrow('the disk is full');
  full = false;
  for (const number of [2, 3]) answer(number);
  totals.add(recorder.closeSecond(0));
  expect(written).toBe(2);
  expect(totals).toMatchObject({ sent: 3, done: 2, errors: 0 });
});

test('a journal is read back as it was written, by more writers than one, and lines that are none are told', async () => {
  const file = scratchFile();
  startJournal(file, { orderIdPrefix: 'load-1-', clientIds: ['app_1'] });
  const [one, other] = [openJournal(file), openJournal(file)];
  const entry = (number: number) => ({
    merchant: 0,
    orderId: `load-1-${number}`,
    amount: '1.00',
    serviceOrderId: number,
    orderToken: 't',
  });
  one.write([entry(1)]);
  other.write([entry(2), entry(3)]);
  one.write([entry(4)]);
  for (const journal of [one, other]) journal.close();
  const head = { orderIdPrefix: 'load-1-', clientIds: ['app_1'] };
  expect(await readJournal(file)).toEqual({ head, entries: [1, 2, 3, 4].map(entry), unreadable: [] });
  expect(() => startJournal(file, head)).toThrow('EEXIST');

  const lines = readFileSync(file, 'utf8');
  const spoilt = scratchFile();
  writeFileSync(spoilt, lines.replace('"load-1-2"', '"other-2"'));
  expect(await readJournal(spoilt)).toEqual({ head, entries: [1, 3, 4].map(entry), unreadable: [3] });
  writeFileSync(spoilt, '');
  await expect(readJournal(spoilt)).rejects.toThrow('the file is empty');
});

test('a line that a killed process left half written spoils no line of the process that writes on', async () => {
  const file = scratchFile();
  const head = { orderIdPrefix: 'load-1-', clientIds: ['app_1'] };
  const entry = (number: number) => ({
    ...{ merchant: 0, orderId: `load-1-${number}`, amount: '1.00', serviceOrderId: number, orderToken: 't' },
  });
  startJournal(file, head);
  const [killed, other] = [openJournal(file), openJournal(file)];
  killed.write([entry(1), entry(2)]);
  truncateSync(file, statSync(file).size - 9);
  other.write([entry(3)]);
  for (const journal of [killed, other]) journal.close();
  expect(await readJournal(file)).toEqual({ head, entries: [entry(1), entry(3)], unreadable: [3] });
});

test('wrong outcomes, other orders’ answers and calls that were given up are errors', () => {
  const recorder = createRecorder(undefined);
  const totals = createTotals();
  for (let sent = 0; sent < 4; sent += 1) recorder.sent(1);
  recorder.dropped();
  recorder.answered(call(1), acknowledged(1), 5);
  recorder.answered(call(2), acknowledged(1), 5);
  recorder.answered(call(3), { outcome: 'overloaded', acknowledged: undefined }, 700);
  recorder.giveUp();
  totals.add(recorder.closeSecond(2));
  expect(totals).toMatchObject({ sent: 4, done: 3, errors: 3, unanswered: 1, dropped: 1, underWay: 0 });
  expect([...totals.outcomes.keys()]).toEqual(['created', 'another order’s answer', 'overloaded']);
  expect(totals.latencies.max).toBeCloseTo(700, 0);
  expect(totals.seconds().map(({ done }) => done)).toEqual([0, 0, 3]);
});

test('the parts of several processes are one second together', () => {
  const totals = createTotals();
  for (const latencyMs of [10, 30]) {
    const recorder = createRecorder(undefined);
    for (const number of [1, 2]) {
      recorder.sent(0);
      recorder.answered(call(number), acknowledged(number), latencyMs);
    }
    totals.add(recorder.closeSecond(0));
  }
  expect(totals.seconds()).toMatchObject([{ second: 0, sent: 4, done: 4 }]);
  expect(totals.seconds()[0]?.max_ms).toBeCloseTo(30, 1);
  expect(totals.byDoor.get('json')?.percentile(50)).toBeCloseTo(10, 1);
});

test('a connection that was refused is no quick answer, and a call that nobody answered in time is a slow one', () => {
  const recorder = createRecorder(undefined);
  const totals = createTotals();
  for (const [number, outcome] of ['created', 'no answer: ECONNREFUSED', 'no answer: timeout'].entries()) {
    recorder.sent(0);
    recorder.answered(call(number), { outcome, acknowledged: undefined }, number === 2 ? 10_000 : 5);
  }
  const part = recorder.closeSecond(0);
  totals.add(part);
  expect(totals).toMatchObject({ sent: 3, done: 1, right: 1, errors: 2 });
  expect(totals.latencies.count).toBe(2);
  expect(totals.latencies.percentile(99)).toBeGreaterThanOrEqual(10_000);
  expect(part.bands.reduce((sum, count) => sum + count)).toBe(2);
  expect(totals.seconds()).toMatchObject([{ done: 1, wrong: 2 }]);
});
