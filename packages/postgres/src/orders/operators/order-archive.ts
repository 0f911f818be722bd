import { getTableName, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { arrayLiteral, noStatementTimeoutMs, openConnection, withConnection } from '../../connections/client.ts';
import {
  DatabaseError,
  failsWithAnyValues,
  redact,
  statementFailure,
  withRedactedErrors,
} from '../../connections/errors.ts';
import { hasCitus } from '../../connections/inspect-server.ts';
import {
  accounts,
  orderMetadata,
  orders,
  pairDigest,
  payments,
  pendingRefunds,
  refusedPayments,
} from '../../schema.ts';
import { readPages } from './scan.ts';

const applicationName = 'order-gateway archive';

/** Orders read or restored per statement: about a megabyte. */
const pageOrders = 1_000;

/** Orders created at or after one time and before another, in milliseconds since 1970-01-01 UTC. */
export interface CreatedRange {
  readonly fromMs: number;
  readonly beforeMs: number;
}

/** The result of an import. */
export interface Restored {
  readonly restored: number;
  /** The number of orders that were already stored. They stay as they are. */
  readonly existing: number;
}

/**
 * Yields the orders of a range, page by page in the order of their service order ids, or on Citus, of one shard after
 * the other, each as one line of JSON. PostgreSQL writes the lines, so that amounts stay exact and columns that this
 * version does not know are included. Reads the complete index once, without a time limit. Rejects with an error that
 * contains no values.
 */
export async function* exportOrders(url: string, range: CreatedRange): AsyncGenerator<string[], void> {
  for (const condition of await findParts(url)) yield* exportPart(url, range, condition);
}

/**
 * Returns a condition for each part of the orders: on Citus, for those of the merchants of a shard. A page of several
 * shards would take that many times as long, because each of them would write all lines of a page.
 */
function findParts(url: string): Promise<SQL[]> {
  return withConnection({ url, applicationName }, async ({ db }) => {
    if (!(await hasCitus(db))) return [sql`true`];
    const table = sql.raw(`'${getTableName(orders)}'::regclass`);
    const rows = await db.execute<{ ids: string }>(sql`
      select string_agg(${accounts.id}::text, ',') as ids from ${accounts} group by
      case when ${table} in (select logicalrelid from pg_dist_partition) then get_shard_id_for_distribution_column(${table}, ${accounts.id}) end`);
    return rows.map(({ ids }) => sql.raw(`merchant_id in (${ids})`));
  });
}

async function* exportPart(
  url: string,
  { fromMs, beforeMs }: CreatedRange,
  condition: SQL,
): AsyncGenerator<string[], void> {
  const [from, before] = [fromMs, beforeMs].map((ms) => new Date(ms).toISOString());
  const pages = readPages<{ id: string; merchant: string; line: string }>(
    { url, applicationName, pageMax: pageOrders },
    async (db, after) => {
      const rows = await db.execute<{ id: string; merchant: string; line: string; keys: PaymentKey[] }>(sql`
        select service_order_id as id, merchant_id as merchant, (to_jsonb(${orders}) || jsonb_build_object('refused', refused))::text as line,
          jsonb_build_array(jsonb_build_object('checkout_id', checkout_id, 'payment_id', payment_id)) || refused as keys
        from ${orders} cross join lateral (
          select coalesce(jsonb_agg(payment), '[]') as refused from ${refusedPayments} as payment
          where ${orders.refusedPayments} is not null and ${condition}
            and (payment.merchant_id, payment.order_id) = (${orders.merchantId}, ${orders.order_id})
        ) as all_refused
        where (service_order_id, merchant_id) > (${after?.id ?? '0'}::bigint, ${after?.merchant ?? '0'}::bigint)
          and created_at >= ${from}::timestamptz and created_at < ${before}::timestamptz and ${condition}
        order by service_order_id, merchant_id limit ${pageOrders}`);
      const details = await findDetails(
        db,
        rows.flatMap(({ keys }) => keys),
      );
      return rows.map(({ keys, line, ...row }) => ({ ...row, line: withDetails(line, keys.flatMap(details)) }));
    },
  );
  for await (const page of pages) yield page.map(({ line }) => line);
}

interface PaymentKey {
  readonly checkout_id: number | null;
  readonly payment_id: string | null;
}

/**
 * Finds the dates and notes of payments of checkout systems. Returns a function that lists those of one payment as
 * JSON. A join would not run on Citus.
 */
async function findDetails(db: PostgresJsDatabase, keys: readonly PaymentKey[]) {
  const reported = keys.filter(({ checkout_id }) => checkout_id !== null);
  const ids = arrayLiteral(reported, ({ checkout_id }) => checkout_id);
  const paymentIds = arrayLiteral(reported, ({ payment_id }) => payment_id);
  const found = await db.execute<{ checkout_id: string; payment_id: string; detail: string }>(sql`
    select checkout_id, payment_id, jsonb_build_object('checkout_id', checkout_id, 'payment_id', payment_id,
      'paid_on', paid_on, 'note', note)::text as detail from ${payments}
    where (checkout_id, payment_id) in (select * from unnest(${ids}::bigint[], ${paymentIds}::text[]))
      and coalesce(paid_on::text, note) is not null`);
  const keyOf = ({ checkout_id, payment_id }: PaymentKey | (typeof found)[number]) => `${checkout_id} ${payment_id}`;
  const details = new Map(found.map((row) => [keyOf(row), row.detail]));
  return (key: PaymentKey) => details.get(keyOf(key)) ?? [];
}

/** Adds a member to a line. The line is not parsed, because its amount must stay exact. */
function withDetails(line: string, details: readonly string[]): string {
  return details.length === 0 ? line : `${line.slice(0, -1)}, "payment_details": [${details}]}`;
}

/** The current status of a refund or dispute that is stored as JSON. */
const statusOf = (reversal: SQL): SQL => sql`${reversal} -> 'history' -> -1 ->> 'status'`;

/** Converts the text of a time in milliseconds since 1970-01-01 UTC. */
const timeOf = (ms: SQL): SQL => sql`to_timestamp((${ms})::numeric / 1000)`;

/**
 * Stores the orders from lines that {@link exportOrders} wrote, for the merchants and checkout systems with the same
 * ids. If the merchant already has an order with the same order_id, that order stays unchanged, so an import can be
 * repeated. Rejects with the error of `lines`, or with an error that contains no values and names the line that can't
 * be stored. Orders that were restored before that line stay.
 */
export async function importOrders(url: string, lines: AsyncIterable<string>): Promise<Restored> {
  await using connection = openConnection({ url, applicationName, statementTimeoutMs: noStatementTimeoutMs });
  const counts = { restored: 0, existing: 0 };
  const insert = (page: readonly string[]) =>
    connection.db.execute(sql`
      with lines as (
        select line::jsonb as line from unnest(${arrayLiteral(page, (line) => line)}::text[]) as line
      ), details as (
        select detail.* from lines, jsonb_to_recordset(line -> 'payment_details') as detail (
          checkout_id bigint, payment_id text, paid_on date, note text)
      ), restored as (
        insert into ${orders} select row.* from lines, jsonb_populate_record(null::${orders}, line) as row
        on conflict (merchant_id, order_id) do nothing returning *
      ), refused as (
        select payment.* from lines cross join jsonb_populate_recordset(null::${refusedPayments}, coalesce(line -> 'refused', (
          select jsonb_agg(payment || jsonb_build_object('merchant_id', line -> 'merchant_id', 'order_id', line -> 'order_id'))
          from jsonb_array_elements(nullif(line -> 'refused_payments', 'null')) as payment))) as payment
        join restored using (merchant_id, order_id)
      ), pending as (
        insert into ${pendingRefunds} select merchant_id, service_order_id, ${timeOf(sql`refund -> 'history' -> 0 ->> 'atMs'`)},
          order_id, order_token, (refund ->> 'checkoutId')::bigint, refund ->> 'paymentId',
          case when (refund ->> 'reporterId')::bigint = merchant_id then refund ->> 'refundId' end,
          refund ->> 'providerRefundId', (refund ->> 'amount')::numeric, refund ->> 'currency'
        from restored, jsonb_array_elements(reversals -> 'refunds') as refund where ${statusOf(sql`refund`)} = 'PENDING'
        on conflict do nothing
      ), paid as (
        insert into ${payments} select checkout_id, payment_id, merchant_id, order_id, paid_on, note from (
          select checkout_id, payment_id, merchant_id, order_id from restored where checkout_id is not null
          union all select checkout_id, payment_id, merchant_id, order_id from refused where checkout_id is not null
        ) as reported left join details using (checkout_id, payment_id)
        on conflict do nothing
      ), owed as (
        insert into ${refusedPayments} select * from refused on conflict do nothing
      ), paired as (
        insert into ${orderMetadata} select merchant_id, ${pairDigest(sql`pair.key`, sql`pair.value`)}, created_at, service_order_id
        from restored, jsonb_each_text(metadata) as pair on conflict do nothing
      ) select 1 from restored`);
  await withRedactedErrors(connection.open);
  const store = async (page: readonly string[]): Promise<void> => {
    try {
      const rows = await insert(page);
      counts.restored += rows.length;
      counts.existing += page.length - rows.length;
    } catch (error) {
      if (statementFailure(error) !== undefined || failsWithAnyValues(error)) throw redact(error);
      if (page.length === 1) {
        const number = counts.restored + counts.existing + 1;
        throw new DatabaseError(`line ${number}: ${redact(error).message}`);
      }
      // Stores the lines one by one, to find the one that fails.
      for (const line of page) await store([line]);
    }
  };
  let page: string[] = [];
  for await (const line of lines) {
    page.push(line);
    if (page.length < pageOrders) continue;
    await store(page);
    page = [];
  }
  if (page.length > 0) await store(page);
  return counts;
}
