import { withSession } from '@gateway/dev-postgres/testing';
import { missingCitus } from '@gateway/dev-postgres/testing/citus';
import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { leftOut } from '../../../../tools/left-out.ts';
import { distributedTables, startDistributedCluster } from '../../testing/distributed-database.ts';
import { doMerchantOperations, merchantRuns } from '../../testing/merchant-operations.ts';
import { type RecordedRun, startRecordingProxy } from '../../testing/recording-proxy.ts';

test.skipIf(leftOut('statements on Citus', missingCitus()))(
  'one shard answers each statement of a merchant',
  async () => {
    const cluster = await startDistributedCluster();
    onTestFinished(cluster.close, 60_000);
    const proxy = await startRecordingProxy(cluster.url);
    onTestFinished(() => proxy.close());
    const sql = postgres(cluster.url, { max: 1, onnotice: () => {} });
    onTestFinished(() => sql.end({ timeout: 1 }));
    await doMerchantOperations(proxy.url, sql);
    const functions = await sql`select proname from pg_proc where 'merchant_id' = any(proargnames)`;
    const names = [...(await distributedTables()), ...functions.map(({ proname }) => proname)];
    const isDistributed = new RegExp(`\\b(${names.join('|')})\\b`);
    const others: string[] = [];
    for (const run of merchantRuns(proxy.runs)) {
      if (!isDistributed.test(run.text)) continue;
      const tasks = await tasksOf(cluster.url, run);
      if (tasks.join() !== '1') others.push(`${tasks.join()}: ${run.text}`);
    }
    expect(others).toEqual([]);
  },
);

/** The number of tasks of each query that the coordinator sends to workers for a statement. */
async function tasksOf(url: string, { text, values }: RecordedRun): Promise<number[]> {
  return withSession(url, async (session) => {
    await session.unsafe(`prepare recorded as ${text}`);
    const literals = values.map((value) => (value === null ? 'null' : `'${value.replaceAll("'", "''")}'`));
    const run = literals.length === 0 ? 'execute recorded' : `execute recorded(${literals.join()})`;
    const [row] = await session.unsafe(`explain (format json, costs off) ${run}`);
    return JSON.stringify(row)
      .matchAll(/"Task Count":(\d+)/g)
      .map(([, count]) => Number(count))
      .toArray();
  });
}
