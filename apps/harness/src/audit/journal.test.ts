import { appendFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../../tools/test-resources.ts';
import { createJournal, type JournalEntry, readJournal } from './journal.ts';

const head = { seed: 1, client_ids: ['app_1'] };

function entry(number: number): JournalEntry {
  const created_at = '2026-11-20T21:01:42.172+00:00';
  const seen = { number, status: 'UN_PAID', scheduledMs: 1, receivedMs: 2 } as const;
  if (number === 2) return { ...seen, status: 'PAID', paymentId: 'p' };
  return number === 3 ? seen : { ...seen, created: { service_order_id: number, order_token: 't', created_at } };
}

test('a journal is read as it was written, and lines that are no entries are named', async () => {
  const file = join(await temporaryFolder(), 'journal.ndjson');
  const journal = createJournal(file, head);
  journal.write([entry(1), entry(2)]);
  journal.write([]);
  journal.write([entry(3)]);
  expect(await readJournal(file)).toEqual({ head, entries: [1, 2, 3].map(entry), unreadable: [] });
  journal.close();
  expect(() => createJournal(file, head)).toThrow('EEXIST');

  const sold = { ...entry(3), status: 'SOLD' };
  appendFileSync(file, `[1,"PAID",1,2]\n${JSON.stringify(sold)}\n{}\n`);
  expect(await readJournal(file)).toEqual({ head, entries: [1, 2, 3].map(entry), unreadable: [5, 6, 7] });
  for (const text of ['', '[]\n', '{"seed":1}\n']) {
    writeFileSync(file, text);
    await expect(readJournal(file)).rejects.toThrow('is not a journal');
  }
});

test('an incomplete last line, such as that of a killed process, is unreadable and harms no other', async () => {
  const file = join(await temporaryFolder(), 'journal.ndjson');
  createJournal(file, head).write([entry(1), entry(2)]);
  truncateSync(file, statSync(file).size - 9);
  expect(await readJournal(file)).toEqual({ head, entries: [entry(1)], unreadable: [3] });
});
