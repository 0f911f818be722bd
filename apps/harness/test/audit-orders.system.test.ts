import { execFile } from 'node:child_process';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { auditJournal } from '../src/audit/audit.ts';
import { startOwnGateway } from '../src/gateway/own-gateway.ts';
import { openSender } from '../src/load/calls/sender.ts';
import { constantRate, parseProfile } from '../src/load/profile/profile.ts';
import { runLoad } from '../src/load/run/run-load.ts';
import { environment, folder, useFolder } from './load/load-program.ts';
import { testDatabase } from './test-database.ts';

useFolder();

const auditProgram = fileURLToPath(new URL('../src/audit-orders.ts', import.meta.url));

test('audit-orders finds lost, changed, duplicated and unexplained orders, and lines that it cannot read', async () => {
  const merchants = [{ name: 'First' }, { name: 'Second' }];
  const gateway = await startOwnGateway(merchants, new AbortController().signal, testDatabase);
  onTestFinished(gateway.stop);
  const { credentials, databaseUrl } = gateway;
  const journalFile = join(folder, 'journal.ndjson');
  const profile = parseProfile({ merchants: 2, protocol: 'mixed', phases: constantRate(150, 2), replay_share: 0.1 });
  const settings = { ...profile, profile: 'none', seed: 20_261_120 };
  const run = { settings, sender: openSender(gateway, 4), credentials, journalFile };
  await runLoad(run, new AbortController().signal);
  const counts = await auditJournal(journalFile, databaseUrl);
  expect(counts).toMatchObject({ lost: 0, duplicated: 0, changed: 0, unreadable: 0 });
  expect(counts.acknowledged).toBeGreaterThan(0);

  // The command finds no error either, until the journal acknowledges an order that is not stored.
  const audit = (file = journalFile) =>
    promisify(execFile)(process.execPath, [auditProgram, '--journal', file], {
      env: environment({ DATABASE_URL: databaseUrl }),
    });
  const row = (lost: number, unreadable: number) =>
    new RegExp(`\\n +\\d+ +${lost} +0 +0 +${unreadable} +\\d+ +\\d+ +0 +0 +- +-\\n`);
  expect((await audit()).stdout).toMatch(row(0, 0));
  const created = { service_order_id: 99, order_token: 'token', created_at: '2026-01-01T00:00:00.000+00:00' };
  const lines = [
    { call: 999_999, sentMs: 1, number: 999_999, request: { kind: 'create' } },
    { call: 999_999, receivedMs: 2, outcome: 'created', shown: [{ number: 999_999, status: 'UN_PAID', ...created }] },
  ];
  const line = lines.map((entry) => `${JSON.stringify(entry)}\n`).join('');
  appendFileSync(journalFile, line);
  expect(await auditJournal(journalFile, databaseUrl)).toMatchObject({ lost: 1, unreadable: 0 });

  // A line that cannot be read is reported, and the audit fails.
  appendFileSync(journalFile, '{"call":12,"sent');
  await expect(audit()).rejects.toMatchObject({ code: 1, stdout: expect.stringMatching(row(1, 1)) });
  const cut = `${journalFile}-cut`;
  writeFileSync(cut, readFileSync(journalFile, 'utf8').replace(line, ''));
  const { unreadable, examples: invalidLines } = await auditJournal(cut, databaseUrl);
  expect([unreadable, invalidLines]).toEqual([1, [expect.stringMatching(/^line \d+ of the journal is invalid$/)]]);
  // The audit finds an order that was changed in the database, and names the changed members.
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  await sql`update orders set order_currency = 'CHF', order_note = 'changed', created_at = created_at + interval '1 ms'
    where order_id = (select min(order_id) from orders where order_currency <> 'CHF')`;
  const { changed, examples } = await auditJournal(journalFile, databaseUrl);
  expect({ changed, examples }).toEqual({
    changed: 1,
    examples: expect.arrayContaining([
      expect.stringMatching(/stored with a different order_currency, order_note, created_at$/),
    ]),
  });

  // It also finds a token copied to another order and a service_order_id shared with another merchant's order.
  const copyOf = (orderId: string, merchantId: string, token: string, id: string) => sql`
    insert into orders select (jsonb_populate_record(orders, jsonb_build_object(
      'order_id', ${orderId}::text, 'merchant_id', ${merchantId}::int,
      'order_token', ${token}::text, 'service_order_id', ${id}::bigint))).*
    from orders where order_id = (select min(order_id) from orders)`;
  const [order] = await sql`select merchant_id, order_token, service_order_id from orders order by order_id limit 1`;
  const { merchant_id, order_token, service_order_id } = order as postgres.Row;
  await copyOf('copied token', merchant_id, order_token, '9007199254740001');
  expect(await auditJournal(journalFile, databaseUrl)).toMatchObject({ duplicated: 1 });
  await copyOf('copied id', merchant_id === '1' ? '2' : '1', 'token', service_order_id);
  await sql`delete from orders where order_id = 'copied token'`;
  expect(await auditJournal(journalFile, databaseUrl)).toMatchObject({ duplicated: 1 });
  await sql`delete from orders where order_id = 'copied id'`;

  // It also finds a state that no event explains.
  await sql`update orders set order_status = 'CANCELLED', cancelled_at = now()
    where order_id = (select max(order_id) from orders)`;
  await sql.end();
  const { examples: unexplained, ...unexplainedCounts } = await auditJournal(journalFile, databaseUrl);
  expect(unexplainedCounts).toMatchObject({ changed: 1, unexplained: 1 });
  expect(unexplained.join('\n')).toMatch(/: unexplained\ncall +sent.+\nstored: CANCELLED; events: none\n/s);

  const empty = `${journalFile}-empty`;
  writeFileSync(empty, `${readFileSync(journalFile, 'utf8').split('\n')[0]}\n`);
  const stderr = expect.stringMatching(/^Database: .+\nthe journal has no acknowledgement to audit\n$/);
  await expect(audit(empty)).rejects.toMatchObject({ code: 2, stderr });
});
