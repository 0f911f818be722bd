import { hash } from 'node:crypto';
import type { AccountId } from '@order-gateway/domain/accounts';
import { erasedValues, erasureDigest, isManual, type Order, personalFieldNames } from '@order-gateway/domain/orders';
import { systemActor } from '@order-gateway/runtime/process';
import { and, asc, eq, isNull, lt, type SQL, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import type { AdminOptions } from '../../accounts/admin-connection.ts';
import { type RecordedAction, runRecorded } from '../../accounts/audit-log.ts';
import {
  arrayLiteral,
  type Connection,
  type MerchantServer,
  noStatementTimeoutMs,
  withConnection,
} from '../../connections/client.ts';
import { DatabaseError, isConcurrencyFailure } from '../../connections/errors.ts';
import { hasCitus } from '../../connections/inspect-server.ts';
import { openOnServers, waitMsMax } from '../../merchant-servers.ts';
import { accounts, orderMetadata, orders, payments } from '../../schema.ts';
import { orderOf } from '../order-rows.ts';
import { prepareServerQuery } from '../server-query.ts';

const applicationName = 'order-gateway erasure';

/** The maximum number of orders that one statement erases: about a tenth of a second of work. */
const batchMax = 500;

/** Which orders to erase. */
export type ErasureTarget =
  | { readonly by: 'order'; readonly clientId: string; readonly orderId: string }
  /** All orders with this customer_email, ignoring case. The column has no index, so every order is read. */
  | { readonly by: 'email'; readonly email: string }
  /** All orders created before this time, or more than this number of days ago by the database's clock. */
  | { readonly by: 'age'; readonly before: Date | { readonly daysAgo: number } };

/** A target whose merchant or time is known. */
interface ResolvedTarget {
  readonly by: ErasureTarget['by'];
  /** The merchant of the one order. */
  readonly merchantId?: AccountId;
  /** Whether an order belongs to the target. */
  readonly condition: SQL | undefined;
  /** What the audit log records about the target, which is never the e-mail address. */
  readonly recorded: Pick<RecordedAction, 'clientId' | 'details'>;
}

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
 * contains no values, after it has erased the orders on the other servers of merchants; they stay erased.
 */
export async function eraseOrders(options: ErasureOptions, target: ErasureTarget): Promise<number> {
  const { url } = options;
  const limits = target.by === 'email' ? { statementTimeoutMs: noStatementTimeoutMs } : {};
  const connectionOptions = { url, applicationName, ...limits };
  const [resolved, isDistributed] = await withConnection(connectionOptions, ({ db, run }) =>
    run(() => Promise.all([resolve(db, target), hasCitus(db)])),
  );
  const eraseOn = (server?: MerchantServer) =>
    withConnection(connectionOptions, (connection) => eraseOnServer(connection, server, resolved, options));
  // The statements for one order name its merchant, so they run on the merchant's server.
  if (target.by === 'order') return eraseOn();
  const servers = openOnServers({ url, isDistributed }, ({ server }) => ({ server, close: async () => {} }));
  try {
    const counts = await servers.onEach(({ server }) => eraseOn(server), waitMsMax)(undefined);
    if (counts.length === 0) throw new DatabaseError('the servers of the merchants could not be read');
    return counts.reduce((total, count) => total + count, 0);
  } finally {
    await servers.close();
  }
}

/** Erases the orders of all merchants or, of one server, those of one merchant after the other. */
async function eraseOnServer(
  connection: Connection,
  server: MerchantServer | undefined,
  target: ResolvedTarget,
  { key, actor = systemActor(), signal }: ErasureOptions,
): Promise<number> {
  const { db } = connection;
  const run = <Rows>(statement: () => Promise<Rows>) =>
    target.by === 'email' ? statement() : connection.run(statement);
  const action = { actor, name: 'orders.erase', ...target.recorded };
  const erase = async (merchantId?: AccountId) => {
    for (let count = 0; ; ) {
      const found = await run(() => findBatch(db, target, merchantId));
      try {
        const erased =
          found.length === 0 ? 0 : await run(() => eraseBatch(db, found.map(orderOf), merchantId, key, action));
        count += erased;
        // The others have changed since they were found, and are looked for again.
        if ((found.length < batchMax && erased === found.length) || signal?.aborted) return count;
      } catch (error) {
        // The sweep of expired orders locks the same orders in a different sequence, so the two can deadlock.
        if (!isConcurrencyFailure(error)) throw error;
      }
    }
  };
  if (server === undefined) return erase(target.merchantId);
  const findMerchants = prepareFindMerchants(db, server, target);
  for (let count = 0; ; ) {
    const found = await run(() => findMerchants());
    for (const merchantId of new Set(found.map(({ merchantId }) => merchantId))) {
      if (signal?.aborted) return count;
      count += await erase(merchantId);
    }
    if (found.length === 0) return count;
  }
}

/** Counts the orders that {@link eraseOrders} would erase. The statement has no time limit. */
export function countErasableOrders(url: string, target: ErasureTarget): Promise<number> {
  const options = { url, applicationName, statementTimeoutMs: noStatementTimeoutMs };
  return withConnection(options, async ({ db }) => db.$count(orders, isErasable(await resolve(db, target))));
}

/**
 * Resolves a target, once for all its statements. The clock of a gateway may be wrong, so the database decides how old
 * an order is.
 */
async function resolve(db: PostgresJsDatabase, target: ErasureTarget): Promise<ResolvedTarget> {
  const { by } = target;
  if (by === 'email') {
    const condition = sql`lower(${orders.customer_email}) = lower(${target.email})`;
    return { by, condition, recorded: { details: { by } } };
  }
  if (by === 'order') {
    const { clientId, orderId } = target;
    const [account] = await db.select({ id: accounts.id }).from(accounts).where(eq(accounts.clientId, clientId));
    // No account has the id 0.
    const merchantId = (account?.id ?? 0) as AccountId;
    const condition = and(eq(orders.merchantId, merchantId), eq(orders.order_id, orderId));
    return { by, merchantId, condition, recorded: { clientId, details: { by, order_id: orderId } } };
  }
  const before = target.before instanceof Date ? target.before : await timeDaysAgo(db, target.before.daysAgo);
  const recorded = { details: { by, before: before.toISOString() } };
  return { by, condition: lt(orders.createdAt, before), recorded };
}

async function timeDaysAgo(db: PostgresJsDatabase, days: number): Promise<Date> {
  const [row] = await db.execute<{ before: string }>(sql`select now() - make_interval(days => ${days}::int) as before`);
  return new Date(row?.before ?? Number.NaN);
}

function isErasable({ condition }: ResolvedTarget): SQL | undefined {
  return and(isNull(orders.erasedDigest), condition);
}

/** Finds merchants of a server that have orders to erase. The rows contain a merchant once for each order. */
function prepareFindMerchants(db: PostgresJsDatabase, server: MerchantServer, target: ResolvedTarget) {
  const { merchantId, createdAt } = orders;
  const columns = { merchantId: 'bigint' };
  return prepareServerQuery<{ merchantId: AccountId }>(db, server, { name: 'find_erasable', columns }, () =>
    db
      .select({ merchantId: sql<AccountId>`${merchantId}` })
      .from(orders)
      .where(isErasable(target))
      .orderBy(asc(createdAt))
      .limit(batchMax),
  );
}

function findBatch(db: PostgresJsDatabase, target: ResolvedTarget, merchantId: AccountId | undefined) {
  return db
    .select()
    .from(orders)
    .where(and(isOfMerchant(orders, merchantId), isErasable(target)))
    .orderBy(asc(orders.createdAt))
    .limit(batchMax)
    .execute();
}

/** Restricts a table to a merchant, if one is given. On Citus, the statement then runs on the merchant's server. */
function isOfMerchant(table: { readonly merchantId: AnyPgColumn }, merchantId: AccountId | undefined): SQL {
  return merchantId === undefined ? sql`true` : eq(table.merchantId, merchantId);
}

async function eraseBatch(
  db: PostgresJsDatabase,
  found: readonly Order[],
  merchantId: AccountId | undefined,
  key: Uint8Array,
  action: RecordedAction,
): Promise<number> {
  const erasures = found.map(({ merchantId, orderStatus, fields }) => ({
    merchantId,
    orderId: fields.order_id,
    orderStatus,
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
      where ${isOfMerchant(orderMetadata, merchantId)} and ${orderMetadata}.merchant_id = pair.merchant_id and ${orderMetadata}.pair_digest = pair.pair_digest
        and ${orderMetadata}.created_at = pair.created_at and ${orderMetadata}.service_order_id = pair.service_order_id`);
  }
  // An order that is paid after it was found, perhaps with a note, is not erased below, but found again.
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
      ${array('digest', 'bytea')}, ${array('orderStatus', 'text')})
      as erasure (merchant_id, order_id, return_url, digest, order_status)
    where ${isOfMerchant(orders, merchantId)} and ${orders}.merchant_id = erasure.merchant_id and ${orders}.order_id = erasure.order_id
      and ${isNull(orders.erasedDigest)} and ${orders}.order_status = erasure.order_status
    returning ${orders}.order_id`;
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
