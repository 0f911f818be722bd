import { sql } from 'drizzle-orm';
import { attempts, auditLog, calls, credits, transfers } from './schema.ts';
import type { Store } from './store.ts';

/** A statement erases at most this many rows, so that it locks none for long. */
const rowsMax = 10_000;

/** Opens the erasure of what can concern a customer: the digests of payers, and the requests to providers. */
export function openErasure({ run }: Pick<Store, 'run'>) {
  const erase = async (days: number): Promise<number> => {
    const isOld = sql`created_at < now() - make_interval(days => ${days})`;
    const [erased] = await run((db) =>
      db.execute<{ count: number }>(sql`
        with payers as (
          update ${credits} set payer_digest = '' where credit_id in (
            select credit_id from ${credits} where ${isOld} and payer_digest <> '' and state <> 'WAITING' limit ${rowsMax}
          ) returning 1
        ), requests as (
          delete from ${calls} where call_id in (
            select call_id from ${calls} where ${isOld} and not exists (
              select from ${attempts} where ${attempts.attemptId} = ${calls.attemptId} and due_at is not null
            ) limit ${rowsMax}
          ) returning 1
        )
        select (select count(*) from payers)::int + (select count(*) from requests)::int as count`),
    );
    const count = erased?.count ?? 0;
    return count < rowsMax ? count : count + (await erase(days));
  };
  return {
    /** Erases what is older than a number of days, except for payments that are not finished. Returns how many rows. */
    eraseOlderThan: erase,

    /** Erases the digests of the payers whose transfers were assigned to an order, or name it. Returns how many. */
    async eraseOrder(orderToken: string, actor: string): Promise<number> {
      const [erased] = await run((db) =>
        db.execute<{ count: number }>(sql`
          with payers as (
            update ${credits} set payer_digest = ''
            where payer_digest <> '' and state <> 'WAITING' and (
              order_token = ${orderToken}
              or order_token is null
                and reference in (select reference from ${transfers} where order_token = ${orderToken})
            ) returning 1
          ), logged as (
            insert into ${auditLog} (actor, action, details)
            values (${actor}, 'erase', jsonb_build_object('payers', (select count(*) from payers)::text))
          )
          select count(*)::int as count from payers`),
      );
      return erased?.count ?? 0;
    },
  };
}
