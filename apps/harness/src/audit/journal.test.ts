import { appendFileSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createJournal, type JournalEntry, readJournal } from './journal.ts';

const head = { seed: 1, client_ids: ['app_1'] };

function entry(number: number): JournalEntry {
  const created_at = '2026-11-20T21:01:42.172+00:00';
  return { number, response: { service_order_id: number, order_token: 't', created_at, order_status: 'UN_PAID' } };
}

function scratchFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'journal-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'journal.ndjson');
}

test('a journal is read as it was written, and lines that are not acknowledgements are named', async () => {
  const file = scratchFile();
  const journal = createJournal(file, head);
  journal.write([entry(1), entry(2)]);
  journal.write([]);
  journal.write([entry(3)]);
  expect(await readJournal(file)).toEqual({ head, entries: [1, 2, 3].map(entry), unreadable: [] });
  journal.close();
  expect(() => createJournal(file, head)).toThrow('EEXIST');

  appendFileSync(file, '["1",2,"t","",""]\n{}\n');
  expect(await readJournal(file)).toEqual({ head, entries: [1, 2, 3].map(entry), unreadable: [5, 6] });
  for (const text of ['', '[]\n', '{"seed":1}\n']) {
    writeFileSync(file, text);
    await expect(readJournal(file)).rejects.toThrow('is not a journal');
  }
});

test('an incomplete last line, as a killed process leaves it, is unreadable and harms no other', async () => {
  const file = scratchFile();
  createJournal(file, head).write([entry(1), entry(2)]);
  truncateSync(file, statSync(file).size - 9);
  expect(await readJournal(file)).toEqual({ head, entries: [entry(1)], unreadable: [3] });
});
