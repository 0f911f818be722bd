import { appendFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../../tools/test-resources.ts';
import { createJournal, type JournalCall, type JournalResponse, readJournal } from './journal.ts';

const head = { seed: 1, client_ids: ['app_1'], started_at_ms: 1_795_300_000_000 };
const attempt = { checkout: 'chk_1', attemptId: 'a' };
const payment = { checkout: 'chk_1', paymentId: 'p', paidAtMs: 1, amount: '1.00', currency: 'EUR' };

const calls: JournalCall[] = [
  { call: 1, sentMs: 1, number: 5, request: { kind: 'create' } },
  { call: 2, sentMs: 2, number: 5, request: { kind: 'pay', payment, attempt } },
  { call: 3, sentMs: 3, request: { kind: 'read' } },
  { call: 0, sentMs: 3, number: 0, request: { kind: 'start', attempt, leaseMs: 1 } },
  { call: 4, sentMs: 4, number: 5, request: { kind: 'end', attempt } },
  { call: 5, sentMs: 4, number: 5, request: { kind: 'cancel' } },
];
const shown = { number: 5, status: 'UN_PAID' as const, service_order_id: 1 };
const response: JournalResponse = { call: 1, receivedMs: 4, outcome: 'created', shown: [shown] };
const started: JournalResponse = { call: 2, receivedMs: 4, outcome: 'ok', shown: [], leaseEndsAtMs: 9 };

test('a journal is read as it was written, and invalid lines are reported by number', async () => {
  const file = join(await temporaryFolder(), 'journal.ndjson');
  const journal = createJournal(file, head);
  journal.write(calls);
  journal.write([]);
  journal.write([started, response]);
  const [first, second, ...rest] = calls;
  const read = [{ ...first, response }, { ...second, response: started }, ...rest];
  expect(await readJournal(file)).toEqual({ head, calls: read, unreadable: [] });
  journal.close();
  expect(() => createJournal(file, head)).toThrow('EEXIST');

  const invalidLines = [
    [1, 'PAID', 1, 2],
    {},
    { ...response, call: 9 },
    { ...response, call: -1 },
    { ...response, shown: [{ ...shown, status: 'SOLD' }] },
    { ...response, shown: [{ ...shown, number: -1 }] },
    { ...response, shown: [{ ...shown, service_order_id: 0 }] },
    { ...response, shown: [{ ...shown, isPaid: true }] },
    { ...first, call: -1 },
    { ...first, number: -1 },
    { ...first, request: { kind: 'refund' } },
    { ...first, request: { kind: 'start', attempt } },
    { ...first, request: { kind: 'end' } },
    { ...first, request: { kind: 'pay' } },
  ];
  appendFileSync(file, invalidLines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const unreadable = invalidLines.map((_, index) => 10 + index);
  expect(await readJournal(file)).toEqual({ head, calls: read, unreadable });
  for (const line of [{}, [], { seed: 1 }, { ...head, seed: -1 }, { ...head, client_ids: [] }, { ...head, end: 1 }]) {
    writeFileSync(file, JSON.stringify(line));
    await expect(readJournal(file)).rejects.toThrow('is not a journal');
  }
  for (const text of ['', 'seed\n']) {
    writeFileSync(file, text);
    await expect(readJournal(file)).rejects.toThrow('is not a journal');
  }
});

test('an incomplete last line, as left by a killed process, is unreadable and does not affect the other lines', async () => {
  const file = join(await temporaryFolder(), 'journal.ndjson');
  createJournal(file, head).write(calls);
  truncateSync(file, statSync(file).size - 9);
  expect(await readJournal(file)).toEqual({ head, calls: calls.slice(0, -1), unreadable: [7] });
});
