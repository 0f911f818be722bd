import { hash } from 'node:crypto';
import { erasedValues, erasureDigest, isManual, type Order, personalFieldNames } from '@order-gateway/domain/orders';
import { and, asc, eq, inArray, isNull, lt, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import type { AdminOptions } from '../../accounts/admin-connection.ts';
import { runRecorded, systemActor } from '../../accounts/audit-log.ts';
import { arrayLiteral, noStatementTimeoutMs, withConnection } from '../../connections/client.ts';
import { isConcurrencyFailure } from '../../connections/errors.ts';
import { accounts, orderMetadata, orders, payments } from '../../schema.ts';
import { orderOf } from '../order-rows.ts';

/** The maximum number of orders that one statement erases: about a tenth of a second of work. */
const batchMax = 500;

/** Which orders to erase. */
export type ErasureTarget =
  | { readonly by: 'order'; readonly clientId: string; readonly orderId: string }
  /** All orders with this customer_email, ignoring case. The column has no index, so every order is read. */
  | { readonly by: 'email'; readonly email: string }
  /** All orders created before this time, or more than this number of days ago by the database's clock. */
  | { readonly by: 'age'; readonly before: Date | { readonly daysAgo: number } };

/** A target whose time is known. */
type ResolvedTarget = Exclude<ErasureTarget, { readonly by: 'age' }> | { readonly by: 'age'; readonly before: Date };

/** The options of an erasure. */
export interface ErasureOptions extends AdminOptions {
  /** The key of the digests: 32 bytes, from SECRETS_KEY. */
  readonly key: Uint8Array;
  /** If it is aborted, the erasure stops after the batch in flight. */
  readonly signal?: AbortSignal;
}

/**
 * Erases the personal fields of orders, batch by batch. The statement that erases a batch also records it in the audit
 * log, without any customer data. Orders that are already erased stay as they are. Returns the number of orders that
 * this call erased. If the target is an e-mail address, statements have no time limit. Rejects with an error that
 * contains no values; orders that were erased before the error stay erased.
 */
export function eraseOrders(
  { url, key, actor = systemActor(), signal }: ErasureOptions,
  target: ErasureTarget,
): Promise<number> {
  const isSlow = target.by === 'email';
  const options = {
    url,
    applicationName: 'order-gateway erasure',
    ...(isSlow && { statementTimeoutMs: noStatementTimeoutMs }),
  };
  return withConnection(options, async (connection) => {
    const { db } = connection;
    const run = <Rows>(statement: () => Promise<Rows>) => (isSlow ? statement() : connection.run(statement));
    const resolved = await run(() => resolve(db, target));
    let count = 0;
    for (;;) {
      const found = await run(() => findBatch(db, resolved));
      try {
        if (found.length > 0)
          count += await run(() => eraseBatch(db, found.map(orderOf), { key, actor, target: resolved }));
        if (found.length < batchMax || signal?.aborted) return count;
      } catch (error) {
        // The sweep of expired orders locks the same orders in a different sequence, so the two can deadlock.
        if (!isConcurrencyFailure(error)) throw error;
      }
    }
  });
}

/** Counts the orders that {@link eraseOrders} would erase. The statement has no time limit. */
export function countErasableOrders(url: string, target: ErasureTarget): Promise<number> {
  const options = { url, applicationName: 'order-gateway erasure', statementTimeoutMs: noStatementTimeoutMs };
  return withConnection(options, async ({ db }) => {
    const resolved = await resolve(db, target);
    return db.$count(orders, and(isNull(orders.erasedDigest), conditionOf(resolved)));
  });
}

/** The clock of a gateway may be wrong, so the database decides how old an order is. */
async function resolve(db: PostgresJsDatabase, target: ErasureTarget): Promise<ResolvedTarget> {
  if (target.by !== 'age') return target;
  const { before } = target;
  if (before instanceof Date) return { by: 'age', before };
  const [row] = await db.execute<{ before: string }>(
    sql`select now() - make_interval(days => ${before.daysAgo}) as before`,
  );
  return { by: 'age', before: new Date(row?.before ?? Number.NaN) };
}

function findBatch(db: PostgresJsDatabase, target: ResolvedTarget) {
  return db
    .select()
    .from(orders)
    .where(and(isNull(orders.erasedDigest), conditionOf(target)))
    .orderBy(asc(orders.createdAt))
    .limit(batchMax)
    .execute();
}

async function eraseBatch(
  db: PostgresJsDatabase,
  found: readonly Order[],
  { key, actor, target }: { readonly key: Uint8Array; readonly actor: string; readonly target: ResolvedTarget },
): Promise<number> {
  const erasures = found.map(({ merchantId, fields }) => ({
    merchantId,
    orderId: fields.order_id,
    returnUrl: erasedValues(fields).return_url,
    digest: `\\x${Buffer.from(erasureDigest(key, merchantId, fields)).toString('hex')}`,
  }));
  const array = (pick: keyof (typeof erasures)[number], type: string) =>
    sql`${arrayLiteral(erasures, (erasure) => erasure[pick])}::${sql.raw(type)}[]`;
  const pairs = found.flatMap(({ merchantId, serviceOrderId, createdAtMs, metadata }) =>
    Object.entries(metadata ?? {}).map(([key, value]) => ({
      merchantId,
      serviceOrderId,
      createdAt: new Date(createdAtMs).toISOString(),
      digest: `\\x${hash('sha256', `${key}=${value}`)}`,
    })),
  );
  if (pairs.length > 0) {
    const pairArray = (pick: keyof (typeof pairs)[number], type: string) =>
      sql`${arrayLiteral(pairs, (pair) => pair[pick])}::${sql.raw(type)}[]`;
    // The pairs are deleted first, because they can only be found by their text, which the next statement erases.
    await db.execute(sql`
      delete from ${orderMetadata} using unnest(${pairArray('merchantId', 'bigint')}, ${pairArray('digest', 'bytea')},
        ${pairArray('createdAt', 'timestamptz')}, ${pairArray('serviceOrderId', 'bigint')})
        as pair (merchant_id, pair_digest, created_at, service_order_id)
      where ${orderMetadata}.merchant_id = pair.merchant_id and ${orderMetadata}.pair_digest = pair.pair_digest
        and ${orderMetadata}.created_at = pair.created_at and ${orderMetadata}.service_order_id = pair.service_order_id`);
  }
  const manual = found.filter(isManual);
  if (manual.length > 0) {
    const keys = sql`unnest(${arrayLiteral(manual, ({ merchantId }) => merchantId)}::bigint[],
      ${arrayLiteral(manual, ({ payment }) => payment?.paymentId ?? null)}::text[])`;
    await db.execute(
      sql`update ${payments} set note = null where (checkout_id, payment_id) in (select * from ${keys})`,
    );
  }
  const erasure = sql`
    update ${orders} set erased_digest = erasure.digest, return_url = erasure.return_url, metadata = null, reversals = ${withoutNotes}, ${emptied}
    from unnest(${array('merchantId', 'bigint')}, ${array('orderId', 'text')}, ${array('returnUrl', 'text')},
      ${array('digest', 'bytea')}) as erasure (merchant_id, order_id, return_url, digest)
    where ${orders}.merchant_id = erasure.merchant_id and ${orders}.order_id = erasure.order_id
      and ${isNull(orders.erasedDigest)}
    returning ${orders}.order_id`;
  const action = { actor, name: 'orders.erase', ...recordOf(target) };
  const details = sql`jsonb_build_object('orders', (select count(*) from acted))`;
  return (await runRecorded(db, erasure, action, { details })).length;
}

/** The refunds and disputes of a row. A paid order without any has empty lists, so that they can get a version. */
const storedReversals = sql`coalesce(${orders}.reversals,
  case when ${orders}.order_status = 'PAID' then '{"version": 0, "refunds": [], "disputes": []}'::jsonb end)`;

/**
 * The refunds and disputes without the merchants' notes. Because they get the next version, a change that was decided
 * before the erasure, and may have a note, is decided again.
 */
const withoutNotes = sql`${storedReversals} || (
  select jsonb_build_object('version', (${storedReversals} ->> 'version')::int + 1, 'refunds',
    coalesce(jsonb_agg(refund || '{"note": null}' order by number), '[]'))
  from jsonb_array_elements(${storedReversals} -> 'refunds') with ordinality as list (refund, number))`;

const emptied = sql.join(
  personalFieldNames.filter((name) => name !== 'return_url').map((name) => sql`${sql.identifier(name)} = ''`),
  sql`, `,
);

function conditionOf(target: ResolvedTarget): SQL | undefined {
  switch (target.by) {
    case 'order': {
      const merchantId = sql`(select ${accounts.id} from ${accounts} where ${accounts.clientId} = ${target.clientId})`;
      return and(inArray(orders.merchantId, merchantId), eq(orders.order_id, target.orderId));
    }
    case 'email':
      return sql`lower(${orders.customer_email}) = lower(${target.email})`;
    case 'age':
      return lt(orders.createdAt, target.before);
  }
}

/** Returns what the audit log records about a target, which is never the e-mail address. */
function recordOf(target: ResolvedTarget) {
  switch (target.by) {
    case 'order':
      return { clientId: target.clientId, details: { by: target.by, order_id: target.orderId } };
    case 'email':
      return { details: { by: target.by } };
    case 'age':
      return { details: { by: target.by, before: target.before.toISOString() } };
  }
}
