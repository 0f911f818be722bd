import { expect, onTestFinished, test } from 'vitest';
import { distributedTables } from '../../testing/distributed-database.ts';
import { doMerchantOperations, isOfMerchant } from '../../testing/merchant-operations.ts';
import { startRecordingProxy } from '../../testing/recording-proxy.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const database = useTestDatabase();

test('each statement of an operation specifies the merchant for every mention of a table that Citus distributes by merchant', async () => {
  const proxy = await startRecordingProxy(database.url);
  onTestFinished(() => proxy.close());
  await doMerchantOperations(proxy.url, database.sql, false);
  const functions = await database.sql`select proname as name, prosrc as text from pg_proc
    where pronamespace = 'public'::regnamespace and 'merchant_id' = any(proargnames)`;
  const statements = [
    ...proxy.runs.filter(isOfMerchant).map(({ text }) => ({ text, merchant: '\\$\\d|any\\(\\$\\d' })),
    ...functions.map(({ name, text }) => ({ text: String(text), merchant: `${name}.merchant_id` })),
  ];
  const tables = await distributedTables();
  const anyTable = `"(${tables.join('|')})"`;
  const mentioned = new Set<string>();
  for (const { text, merchant } of statements) {
    const mentions = text.matchAll(new RegExp(`(from|join|update|into) ${anyTable}`, 'g')).toArray();
    for (const [, , table = ''] of mentions) mentioned.add(table);
    const reads = mentions.filter(([mention]) => !mention.startsWith('into'));
    // A join on the merchant_id of another table restricts both tables to the same merchant.
    const constant = new RegExp(`\\bmerchant_id"? = (${merchant}|${anyTable}\\."merchant_id")`, 'g');
    const named = text.match(constant)?.length ?? 0;
    expect.soft(named, text).toBeGreaterThanOrEqual(reads.length);
  }
  expect([...mentioned].toSorted()).toEqual(tables.toSorted());
});
