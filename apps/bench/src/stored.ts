import type postgres from 'postgres';
import type { LoadResult } from './load.ts';

/** Counts what was stored: only that is taken for an answer. Answers on their way when the sender stops are stored unseen. */
export async function stored(
  sql: postgres.Sql,
  merchantId: number,
  send: () => Promise<LoadResult>,
): Promise<LoadResult> {
  const count = async () => {
    const [row] = await sql`select count(*)::int as count from orders where merchant_id = ${merchantId}`;
    return Number(row?.count);
  };
  const before = await count();
  const result = await send();
  return { ...result, answers: Math.min(result.answers, (await count()) - before) };
}
