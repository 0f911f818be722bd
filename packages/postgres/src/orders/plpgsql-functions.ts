import { refusedPaymentsShown, transitions } from '@order-gateway/domain/orders';
import { and, eq, getTableName, isNull, type Placeholder, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { type AnyPgColumn, PgDialect } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import { plansEveryRun } from '../connections/client.ts';
import {
  eventIdAt,
  events,
  isExpired,
  isLeaseLive,
  orderMetadata,
  orders,
  pairDigest,
  pendingRefunds,
  refusedPayments,
  webhookDeliveries,
  webhookEndpoints,
} from '../schema.ts';
import { conflictTarget, newRow } from './order-rows.ts';

/** The current time of the database, truncated to milliseconds, because the columns would round it, possibly up. */
export const nowInMs = sql`date_trunc('milliseconds', now())`;

/** A new event id: 13 hexadecimal digits of the time in microseconds, so that ids sort by time, and 19 random ones. */
const newEventIdAt = (time: SQL) => sql`${eventIdAt(time)} || left(replace(gen_random_uuid()::text, '-', ''), 19)`;
const newEventId = newEventIdAt(sql`now()`);

/**
 * The parameters by which a function finds an order. The first parameter of every function is `merchant_id`, so that
 * Citus can choose the server of a call.
 */
const orderKey = { merchant_id: 'bigint', order_id: 'text' };

/** The variable in which a function keeps the time of the change. */
const changedAt = sql.raw('changed_at');

/** Builds statements without a database. */
const db = drizzle.mock();

/**
 * A PL/pgSQL function that writes orders of merchants on one server. Citus sends a call of a function to the server of
 * the merchant in its first parameter, but would run an equivalent statement as a distributed transaction
 * (docs/decisions/095-a-merchants-calls-use-its-server.md).
 */
export interface OrderFunction {
  readonly name: string;
  /** Creates or replaces the function. */
  readonly definition: string;
  /** A table expression that calls the function, with placeholders named after its parameters. */
  readonly call: SQL;
  /** Creates the same table expression with values in place of the placeholders. */
  callWith(values: Readonly<Record<string, string | number | null>>): SQL;
}

function orderFunction(
  name: string,
  parameters: Readonly<Record<string, string>>,
  { returns, columns, body }: { readonly returns: string; readonly columns: string; readonly body: string },
): OrderFunction {
  const settings = Object.entries(plansEveryRun).map(([setting, to]) => `set ${setting} = ${to}`);
  const definition = `create or replace function ${name} (${Object.entries(parameters)
    .map((parameter) => parameter.join(' '))
    .join(', ')})
returns ${returns} language plpgsql ${settings.join(' ')} as $$
#variable_conflict use_column
${body}
end $$`;
  const callOf = (read: (parameter: string) => unknown) => {
    const values = Object.entries(parameters).map(([parameter, type]) => sql`${read(parameter)}::${sql.raw(type)}`);
    return sql`${sql.raw(name)}(${sql.join(values, sql`, `)}) as call (${sql.raw(columns)})`;
  };
  return { name, definition, call: callOf(sql.placeholder), callWith: (values) => callOf((name) => values[name]) };
}

/**
 * Defines a function that changes orders of one merchant and, for each, stores an event with its deliveries. The column
 * `changed` of a call is the number of orders that the call changed.
 */
function changeFunction(
  name: string,
  parameters: Readonly<Record<string, string>>,
  define: (value: (parameter: string) => SQL) => {
    /** A query for the time of the change. Later statements read it as {@link changedAt}. Absent: now. */
    readonly time?: SQL;
    /** An update of orders that returns their `order_id`. */
    readonly update: SQLWrapper;
    readonly event: SQL;
    /** Another statement for each changed order. */
    readonly also?: SQL;
  },
): OrderFunction {
  const value = (parameter: string) => sql.raw(`${name}.${parameter}`);
  const { time, update, event, also } = define(value);
  const statements = [
    ...insertEvent(value('merchant_id'), { type: event, at: changedAt, orderId: sql.raw('changed_id') }),
    ...(also ? [also] : []),
  ];
  const body = `declare
  changed_id text;
  changed_at timestamptz(3) := now();
  new_event_id text;
  changed int := 0;
begin
${time ? `  changed_at := (${textOf(time)});\n` : ''}  for changed_id in ${textOf(update)} loop
    new_event_id := ${textOf(newEventId)};
${statements.map((statement) => `    ${textOf(statement)};\n`).join('')}    changed := changed + 1;
  end loop;
  return changed;`;
  return orderFunction(name, parameters, { returns: 'int', columns: 'changed', body });
}

/** The statements that store the event with the id `new_event_id` and its deliveries. */
function insertEvent(ofMerchant: SQL, { type, at, orderId }: Readonly<Record<'type' | 'at' | 'orderId', SQL>>): SQL[] {
  const { merchantId, endpointId, eventTypes, disabledAt } = webhookEndpoints;
  return [
    sql`insert into ${events} (merchant_id, event_id, type, created_at, order_id)
      values (${ofMerchant}, new_event_id, ${type}, ${at}, ${orderId})`,
    sql`insert into ${webhookDeliveries} (merchant_id, endpoint_id, event_id, attempts, next_attempt_at)
      select ${merchantId}, ${endpointId}, new_event_id, 0, now() from ${webhookEndpoints}
      where ${merchantId} = ${ofMerchant} and ${isNull(disabledAt)} and (${isNull(eventTypes)} or ${type} = any(${eventTypes}))`,
  ];
}

/** Returns the text of a statement with its values. */
export function textOf(statement: SQLWrapper): string {
  return new PgDialect().sqlToQuery(statement.getSQL().inlineParams()).sql;
}

/** Whether a row of the orders has the key in the parameters `merchant_id` and `order_id`. */
export function isOrderOf(value: (parameter: string) => SQL | Placeholder): SQL | undefined {
  return and(eq(orders.merchantId, value('merchant_id')), eq(orders.order_id, value('order_id')));
}

const returned = { order_id: orders.order_id };

/** Stores a transition of the domain, if the order is still in its state `from`. */
export const changeOrder = changeFunction(
  'change_order',
  {
    ...orderKey,
    from_status: 'text',
    to_status: 'text',
    event_type: 'text',
    paid_at: 'timestamptz',
    payment_id: 'text',
    checkout_id: 'bigint',
    cancelled_at: 'timestamptz',
  },
  (value) => {
    const to = value('to_status');
    // An expired order keeps the end of its lease, because a payment counts if it was made before that end.
    const keptOnExpiry = (column: AnyPgColumn) => sql`case when ${to} = ${transitions.expire.to} then ${column} end`;
    const update = db
      .update(orders)
      .set({
        orderStatus: to,
        paidAt: value('paid_at'),
        paymentId: value('payment_id'),
        checkoutId: value('checkout_id'),
        cancelledAt: value('cancelled_at'),
        leaseCheckoutId: keptOnExpiry(orders.leaseCheckoutId),
        leaseAttemptId: keptOnExpiry(orders.leaseAttemptId),
        leaseEndsAt: keptOnExpiry(orders.leaseEndsAt),
        endedAttempts: keptOnExpiry(orders.endedAttempts),
      })
      .where(
        and(
          isOrderOf(value),
          eq(orders.orderStatus, value('from_status')),
          // After its expiry, an unpaid order can only expire. The preceding read checked this, but on Citus, it may
          // have used the clock of another server.
          sql`(${to} = ${transitions.expire.to} or (${isExpired}) is not true)`,
          // During a lease, an unpaid order can only be paid, and not by the merchant. The lease may have begun after
          // the read.
          sql`(${to} = ${transitions.pay.to} and ${value('checkout_id')} is distinct from ${value('merchant_id')} or ${isLeaseLive} is not true)`,
        ),
      )
      .returning(returned);
    return { update, event: value('event_type') };
  },
);

/** Makes an unpaid order expire now. */
export const expireOrderNow = changeFunction('expire_order_now', orderKey, (value) => ({
  update: db
    .update(orders)
    .set({ orderStatus: transitions.expire.to, expiresAt: nowInMs })
    .where(
      and(
        isOrderOf(value),
        eq(orders.orderStatus, transitions.expire.from),
        sql`(${isExpired}) is not true`,
        sql`${isLeaseLive} is not true`,
      ),
    )
    .returning(returned),
  event: sql`${transitions.expire.event}`,
}));

/** Stores the expiry of those orders of a merchant that have one of the given order_ids and have expired. */
export const expireOrders = changeFunction(
  'expire_orders',
  { merchant_id: 'bigint', order_ids: 'text[]' },
  (value) => ({
    update: db
      .update(orders)
      .set({ orderStatus: transitions.expire.to })
      .where(
        and(
          eq(orders.merchantId, value('merchant_id')),
          sql`${orders.order_id} = any(${value('order_ids')})`,
          isExpired,
        ),
      )
      .returning(returned),
    event: sql`${transitions.expire.event}`,
  }),
);

/** Stores a refused payment, if the order still has the status `from_status`. */
export const refusePayment = changeFunction(
  'refuse_payment',
  {
    ...orderKey,
    from_status: 'text',
    checkout_id: 'bigint',
    payment_id: 'text',
    amount: 'numeric',
    currency: 'text',
    paid_at: 'timestamptz(3)',
    code: 'text',
  },
  (value) => {
    // These columns of `refused_payments` are also members of each object in the column `orders.refused_payments`.
    const columns = ['checkout_id', 'payment_id', 'amount', 'currency', 'paid_at', 'code'];
    const members = columns.map((column) => sql`'${sql.raw(column)}', ${value(column)}`);
    const { refusedPayments: stored } = orders;
    const kept = sql`case when jsonb_array_length(${stored}) < ${refusedPaymentsShown} then ${stored} else coalesce(${stored} - 0, '[]') end`;
    const object = sql`jsonb_build_object(${sql.join([...members, sql`'refused_at', ${changedAt}`], sql`, `)})`;
    const update = db
      .update(orders)
      .set({ refusedPayments: sql`${kept} || ${object}` })
      .where(and(isOrderOf(value), eq(orders.orderStatus, value('from_status'))))
      .returning(returned);
    const names = columns.map((column) => sql.identifier(column));
    return {
      // The time is later than that of the order's previous refused payment, so that the event of each refused payment
      // shows that payment as the last one.
      time: sql`select greatest(now(), (${stored} -> -1 ->> 'refused_at')::timestamptz + interval '1 millisecond')
      from ${orders} where ${isOrderOf(value)} for update`,
      update,
      event: sql`'order.payment_refused'`,
      also: sql`insert into ${refusedPayments} (merchant_id, order_id, ${sql.join(names, sql`, `)}, refused_at)
      values (${value('merchant_id')}, changed_id, ${sql.join(columns.map(value), sql`, `)}, ${changedAt})`,
    };
  },
);

/**
 * Stores the refunds and disputes of an order, if they still have the version before this one, with the events of the
 * change (`new_events`, oldest first), the pending refunds that checkout systems have to make, and whether a refused
 * payment is still owed. `pending` has a row of {@link pendingRefunds} for each.
 */
export const changeReversals = orderFunction(
  'change_reversals',
  {
    ...orderKey,
    service_order_id: 'bigint',
    reversals: 'jsonb',
    new_events: 'jsonb',
    pending: 'jsonb',
    refused_checkout_id: 'bigint',
    refused_payment_id: 'text',
    refunded_at: 'timestamptz',
  },
  {
    returns: 'int',
    columns: 'changed',
    body: (() => {
      const value = (parameter: string) => sql.raw(`change_reversals.${parameter}`);
      const versionOf = (reversals: SQLWrapper) => sql`coalesce((${reversals} ->> 'version')::int, 0)`;
      const update = db
        .update(orders)
        .set({ reversals: value('reversals') })
        .where(and(isOrderOf(value), sql`${versionOf(orders.reversals)} = ${versionOf(value('reversals'))} - 1`));
      const event = { type: sql.raw('event.type'), at: sql.raw('event.at'), orderId: value('order_id') };
      // Events that are stored together keep their order, because their ids begin with different times.
      const eventTime = sql`now() + event.number * interval '1 microsecond'`;
      const ofOrder = and(
        eq(pendingRefunds.merchantId, value('merchant_id')),
        eq(pendingRefunds.serviceOrderId, value('service_order_id')),
      );
      const ofRefused = and(
        eq(refusedPayments.merchantId, value('merchant_id')),
        eq(refusedPayments.order_id, value('order_id')),
        eq(refusedPayments.checkoutId, value('refused_checkout_id')),
        eq(refusedPayments.paymentId, value('refused_payment_id')),
      );
      const also = [
        db.delete(pendingRefunds).where(ofOrder),
        sql`insert into ${pendingRefunds} select * from jsonb_populate_recordset(null::${pendingRefunds}, ${value('pending')})`,
        db
          .update(refusedPayments)
          .set({ refundedAt: value('refunded_at') })
          .where(ofRefused),
      ];
      return `declare
  event record;
  new_event_id text;
begin
  ${textOf(update)};
  if not found then return 0; end if;
  for event in select * from rows from (jsonb_to_recordset(${textOf(value('new_events'))}) as (type text, at timestamptz))
    with ordinality as added (type, at, number) loop
    new_event_id := ${textOf(newEventIdAt(eventTime))};
${insertEvent(value('merchant_id'), event)
  .map((statement) => `    ${textOf(statement)};\n`)
  .join('')}  end loop;
${also.map((statement) => `  ${textOf(statement)};\n`).join('')}  return 1;`;
    })(),
  },
);

const ofNewOrder = (column: string) => sql.raw(`new_order.${column}`);

/**
 * Inserts one row per statement. Citus sends such an insert directly to the shard, but first writes the rows of every
 * other kind of insert to intermediate files.
 */
const insertOrder = db.insert(orders).values(newRow(ofNewOrder)).onConflictDoNothing(conflictTarget);

const insertPair = db.insert(orderMetadata).values({
  merchantId: ofNewOrder('merchant_id'),
  pairDigest: sql`new_digest`,
  createdAt: ofNewOrder('created_at'),
  serviceOrderId: ofNewOrder('service_order_id'),
});

/**
 * Stores new orders of merchants on one server, with their metadata. The parameter `new_orders` is an array of JSON
 * objects whose members are named after the columns. The call returns the `service_order_id` of each order that did not
 * exist before.
 */
export const insertOrders = orderFunction(
  'insert_orders',
  { merchant_id: 'bigint', new_orders: 'json' },
  {
    returns: 'setof bigint',
    columns: orders.serviceOrderId.name,
    body: `declare
  new_order ${textOf(sql`${orders}`)};
  new_digest ${orderMetadata.pairDigest.getSQLType()};
begin
  for new_order in select * from json_populate_recordset(null::${textOf(sql`${orders}`)}, insert_orders.new_orders) loop
    ${textOf(insertOrder)};
    if found then
      return next ${textOf(ofNewOrder('service_order_id'))};
      for new_digest in select ${textOf(pairDigest(sql`key`, sql`value`))} from jsonb_each_text(${textOf(ofNewOrder('metadata'))}) loop
        ${textOf(insertPair)};
      end loop;
    end if;
  end loop;`,
  },
);

/**
 * Runs a query of distributed tables for the merchants of one server: that of `merchant_id`. There, it runs the query
 * once for each group of shards, with their names in place of the tables', because Citus would run it on all servers.
 * If `merchant_ids` is not null, it uses only the shards of these merchants. The query must write names of tables in
 * quotes, as Drizzle does. `columns` are the columns of its rows, with types.
 */
export const runOnShards = (columns: string) =>
  orderFunction(
    'run_on_shards',
    { merchant_id: 'bigint', merchant_ids: 'bigint[]', query: 'text' },
    {
      returns: 'setof record',
      columns,
      body: `declare
  shard_query text;
  tables text[];
  shard_ids bigint[];
begin
  if not exists (select from pg_dist_partition where logicalrelid = '${getTableName(orders)}'::regclass) then
    return query execute run_on_shards.query;
    return;
  end if;
  for tables, shard_ids in
    select array_agg(relname::text), array_agg(shardid) from pg_dist_partition
    join pg_class on pg_class.oid = logicalrelid join pg_dist_shard using (logicalrelid)
    join pg_dist_placement using (shardid) join pg_dist_local_group using (groupid)
    where colocationid = (select colocationid from pg_dist_partition where logicalrelid = '${getTableName(orders)}'::regclass)
    group by shardminvalue having run_on_shards.merchant_ids is null or array_agg(shardid) && (
      select array_agg(get_shard_id_for_distribution_column('${getTableName(orders)}', merchant.id))
      from unnest(run_on_shards.merchant_ids) as merchant (id)
    )
    order by shardminvalue
  loop
    shard_query := run_on_shards.query;
    for number in 1 .. cardinality(tables) loop
      -- A name after a dot is a column's.
      shard_query := regexp_replace(shard_query, '(?<!\\.)"' || tables[number] || '"', '"' || tables[number] || '_' || shard_ids[number] || '"', 'g');
    end loop;
    return query execute shard_query;
  end loop;
  if not found and run_on_shards.merchant_ids is null then
    raise exception 'this server has no orders: distribute the function run_on_shards';
  end if;`,
    },
  );

/** The statements that create the functions. The migrations contain them. */
export const orderFunctions = [
  changeOrder,
  expireOrderNow,
  expireOrders,
  refusePayment,
  insertOrders,
  changeReversals,
  runOnShards('id bigint'),
].map(({ definition }) => definition);
