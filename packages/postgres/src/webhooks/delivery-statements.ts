import { and, asc, eq, getTableColumns, isNotNull, isNull, type Placeholder, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { prepareAccountsOf } from '../accounts/account-directory.ts';
import type { MerchantServer } from '../connections/client.ts';
import { storedColumns } from '../orders/order-rows.ts';
import { prepareServerQuery } from '../orders/server-query.ts';
import {
  events,
  isEventOfDelivery,
  livePreviousSecret,
  orders,
  webhookDeliveries,
  webhookEndpoints,
} from '../schema.ts';

/**
 * How long a claimed delivery belongs to its process, in seconds: longer than an attempt takes together with storing
 * its result. If the process dies, another one claims the delivery after this time.
 */
export const leaseSeconds = 25;

/** The statements of the queue. */
export function prepareDeliveries(db: PostgresJsDatabase, server: MerchantServer | undefined) {
  return {
    claim: prepareClaim(db, server),
    record: prepareServerQuery(db, server, { name: 'record_deliveries', columns: { endpointId: 'text' } }, (value) =>
      recordOf(db, value),
    ),
    health: prepareHealth(db, server),
    findDue: prepareFindDue(db, server),
    findAccountsOf: prepareAccountsOf(db),
  };
}

/**
 * Reads how long the oldest delivery to any working endpoint has been due, and counts the enabled endpoints. Takes one
 * index lookup per endpoint.
 */
function prepareHealth(db: PostgresJsDatabase, server: MerchantServer | undefined) {
  const oldest = sql`(
    select next_attempt_at from ${webhookDeliveries} as due
    where due.merchant_id = ${webhookEndpoints}.merchant_id and due.endpoint_id = ${webhookEndpoints}.endpoint_id and next_attempt_at is not null
    order by next_attempt_at limit 1
  )`;
  const [works, fails] = [isNull(webhookEndpoints.failingSince), isNotNull(webhookEndpoints.failingSince)];
  const columns = { overdueSeconds: 'float8', working: 'int', failing: 'int' };
  return prepareServerQuery(db, server, { name: 'webhook_health', columns }, () =>
    db
      .select({
        overdueSeconds: sql<number>`greatest(0, extract(epoch from now() - min(${oldest}) filter (where ${works})))::float8`,
        working: sql<number>`count(*) filter (where ${works})::int`,
        failing: sql<number>`count(*) filter (where ${fails})::int`,
      })
      .from(webhookEndpoints)
      .where(isNull(webhookEndpoints.disabledAt)),
  );
}

/**
 * Selects the endpoints, of any merchant, that have due deliveries, and whether each is disabled. Takes one index
 * lookup per endpoint.
 */
function prepareFindDue(db: PostgresJsDatabase, server: MerchantServer | undefined) {
  const { merchantId, endpointId, disabledAt, failingSince } = webhookEndpoints;
  const isDue = sql`(
    select true from ${webhookDeliveries} as due
    where due.merchant_id = ${merchantId} and due.endpoint_id = ${endpointId} and next_attempt_at <= now() limit 1
  )`;
  const columns = { merchantId, endpointId, isDisabled: 'boolean' };
  return prepareServerQuery(db, server, { name: 'find_due_endpoints', columns }, (value) =>
    db
      .select({ merchantId, endpointId, isDisabled: sql<boolean>`${isNotNull(disabledAt)}` })
      .from(webhookEndpoints)
      .where(
        and(
          sql`(${isNotNull(disabledAt)} or ${isNotNull(failingSince)}) = ${value('failing')}::boolean`,
          sql`(${merchantId}, ${endpointId}) > (${value('afterMerchant')}::bigint, ${value('afterEndpoint')}::text)`,
          isDue,
        ),
      )
      .orderBy(asc(merchantId), asc(endpointId))
      .limit(value('limit')),
  );
}

/** Returns a placeholder of a statement, or the value for it. */
type ReadValue = (name: string) => Placeholder;

/** Up to how many deliveries of each endpoint a claim takes. */
interface ClaimedEndpoints {
  /** The beginning of a query that selects the endpoints as `pending`. */
  readonly from: SQL;
  readonly capacity: SQL;
}

/** Moves from endpoint to endpoint through the index of pending deliveries. */
function pendingEndpoints(value: ReadValue): ClaimedEndpoints {
  const { nextAttemptAt } = webhookDeliveries;
  const nextEndpoint = (merchantId: SQL, endpointId: SQL) => sql`
    select merchant_id, endpoint_id from ${webhookDeliveries}
    where ${nextAttemptAt} is not null and (merchant_id, endpoint_id) > (${merchantId}, ${endpointId})
    order by merchant_id, endpoint_id limit 1`;
  const inFlight = sql`coalesce((${value('busy')}::jsonb ->> (pending.merchant_id || ' ' || pending.endpoint_id))::int, 0)`;
  return {
    from: sql`with recursive pending (merchant_id, endpoint_id) as (
      (${nextEndpoint(sql`${value('afterMerchant')}::bigint`, sql`${value('afterEndpoint')}::text`)})
      union all
      select following.* from pending
      cross join lateral (${nextEndpoint(sql`pending.merchant_id`, sql`pending.endpoint_id`)}) as following
    )
    select due.id from pending`,
    capacity: sql`case when endpoint.is_failing is null then ${value('limit')}::int
      else greatest(0, ${value('perEndpoint')}::int - ${inFlight}) end`,
  };
}

/** Takes the endpoints from a list with their capacities. */
function listedEndpoints(value: ReadValue): ClaimedEndpoints {
  const lists = sql`${value('merchantIds')}::bigint[], ${value('endpointIds')}::text[], ${value('capacities')}::int[]`;
  return {
    from: sql`select due.id from unnest(${lists}) as pending (merchant_id, endpoint_id, capacity)`,
    capacity: sql`pending.capacity`,
  };
}

function prepareClaim(db: PostgresJsDatabase, server: MerchantServer | undefined) {
  const { merchantId, endpointId, attempts } = webhookDeliveries;
  const { eventId, type, createdAt } = events;
  const { url, signingSecret } = webhookEndpoints;
  const columns = {
    merchantId,
    endpointId,
    attempt: attempts,
    wasAttempted: 'boolean',
    event: { eventId, type, createdAt },
    order: { ...getTableColumns(orders), isLeaseLive: 'boolean' },
    endpoint: { url, signingSecret, previousSecret: 'bytea' },
  };
  return prepareServerQuery(db, server, { name: 'claim_deliveries', columns }, (value) =>
    claimOf(db, value, server ? listedEndpoints(value) : pendingEndpoints(value)),
  );
}

/**
 * Claims the due deliveries of each endpoint up to the limits, so that the backlog of one endpoint does not affect
 * other endpoints. PostgreSQL reads no further endpoint once it has enough rows. Regardless of the statistics of the
 * tables, every plan for a statement of this form reads due rows by their ctid, joins no third table, and looks up each
 * endpoint once, so it reads no other events or orders of a merchant.
 */
function claimOf(db: PostgresJsDatabase, value: ReadValue, { from, capacity }: ClaimedEndpoints) {
  const due = sql`(
    ${from}
    cross join lateral (
      select (
        select failing_since is not null from ${webhookEndpoints}
        where merchant_id = pending.merchant_id and endpoint_id = pending.endpoint_id and disabled_at is null
      ) as is_failing offset 0
    ) as endpoint
    cross join lateral (
      select ctid as id from ${webhookDeliveries}
      where merchant_id = pending.merchant_id and endpoint_id = pending.endpoint_id and next_attempt_at <= now()
        and coalesce(endpoint.is_failing, true) = ${value('failing')}::boolean
      order by next_attempt_at
      limit ${capacity}
      for update skip locked
    ) as due
    limit ${value('limit')}::int
  )`;
  const claimed = db.$with('claimed').as(
    db
      .update(webhookDeliveries)
      .set({
        attempts: sql`${webhookDeliveries.attempts} + 1`,
        lastAttemptAt: sql`now()`,
        nextAttemptAt: sql`now() + ${leaseSeconds} * interval '1 second'`,
      })
      .from(events)
      .where(and(sql`${webhookDeliveries}.ctid = any(array${due})`, isEventOfDelivery))
      .returning({
        merchantId: webhookDeliveries.merchantId,
        endpointId: webhookDeliveries.endpointId,
        attempt: webhookDeliveries.attempts,
        wasAttempted: sql<boolean>`${isNotNull(webhookDeliveries.lastResult)}`.as('was_attempted'),
        eventId: events.eventId,
        type: events.type,
        createdAt: events.createdAt,
        order_id: events.order_id,
      }),
  );
  const { eventId, type, createdAt, order_id, ...delivery } = claimed._.selectedFields;
  return db
    .with(claimed)
    .select({
      ...delivery,
      event: { eventId, type, createdAt },
      order: storedColumns,
      endpoint: {
        url: webhookEndpoints.url,
        signingSecret: webhookEndpoints.signingSecret,
        previousSecret: livePreviousSecret,
      },
    })
    .from(claimed)
    .innerJoin(orders, and(eq(orders.merchantId, claimed.merchantId), eq(orders.order_id, order_id)))
    .leftJoin(
      webhookEndpoints,
      and(
        eq(webhookEndpoints.merchantId, claimed.merchantId),
        eq(webhookEndpoints.endpointId, claimed.endpointId),
        isNull(webhookEndpoints.disabledAt),
      ),
    );
}

/**
 * Stores results, and what they show about the endpoints: an endpoint works if an event was delivered to it, and is
 * failing otherwise; one that is gone is disabled and stays disabled. An attempt that was not sent does not count. A
 * result of an earlier claim changes nothing. A result for a URL that the endpoint no longer has changes only the
 * delivery. If that URL is gone, the delivery is due again, for the endpoint's new URL.
 */
function recordOf(db: PostgresJsDatabase, value: ReadValue) {
  const array = (name: string, type: string) => sql`${value(name)}::${sql.raw(type)}[]`;
  const endpointKeys = sql`${array('merchantIds', 'bigint')}, ${array('endpointIds', 'text')}`;
  const eventKeys = sql`${array('eventIds', 'text')}, ${array('attempts', 'int')}`;
  const results = sql`${array('kinds', 'text')}, ${array('afterSeconds', 'int')}, ${array('texts', 'text')}`;
  const hasMoved = sql`exists (
    select from ${webhookEndpoints}
    where ${webhookEndpoints.merchantId} = attempt.merchant_id
      and ${webhookEndpoints.endpointId} = attempt.endpoint_id and ${webhookEndpoints.url} <> attempt.url
  )`;
  const nextAttemptAt = sql`case when kind = 'endpoint_gone' and ${hasMoved} then now() else now() + after_seconds * interval '1 second' end`;
  const attempts = sql`(
    select *, ${nextAttemptAt} as next_attempt_at, case when kind = 'delivered' then now() end as delivered_at
    from unnest(${endpointKeys}, ${eventKeys}, ${array('urls', 'text')}, ${results}) as attempt (merchant_id, endpoint_id, event_id, attempts, url, kind, after_seconds, text)
  ) as attempt`;
  const recorded = db.$with('recorded').as(
    db
      .update(webhookDeliveries)
      .set({
        attempts: sql`attempt.attempts - case when attempt.kind = 'not_sent' then 1 else 0 end`,
        nextAttemptAt: sql`attempt.next_attempt_at`,
        deliveredAt: sql`attempt.delivered_at`,
        lastResult: sql`attempt.text`,
      })
      .from(attempts)
      .where(
        sql`${webhookDeliveries.merchantId} = attempt.merchant_id and ${webhookDeliveries.eventId} = attempt.event_id and ${webhookDeliveries.endpointId} = attempt.endpoint_id and ${webhookDeliveries.attempts} = attempt.attempts`,
      )
      .returning({
        merchantId: webhookDeliveries.merchantId,
        endpointId: webhookDeliveries.endpointId,
        url: sql<string>`attempt.url`.as('url'),
        kind: sql<string>`attempt.kind`.as('kind'),
      }),
  );
  // Locks the endpoints in the order of their keys, so that two processes can't deadlock.
  const endpoint = sql`(
    select ${webhookEndpoints.merchantId}, ${webhookEndpoints.endpointId},
      case when not result.works then coalesce(${webhookEndpoints.failingSince}, now()) end as failing_since,
      case when result.is_gone then now() end as disabled_at
    from (
      select merchant_id, endpoint_id, url, bool_or(kind = 'delivered') as works, bool_or(kind = 'endpoint_gone') as is_gone
      from recorded where kind <> 'not_sent' group by merchant_id, endpoint_id, url
    ) as result
    join ${webhookEndpoints} on ${webhookEndpoints.merchantId} = result.merchant_id
      and ${webhookEndpoints.endpointId} = result.endpoint_id and ${webhookEndpoints.url} = result.url
      and ${isNull(webhookEndpoints.disabledAt)}
    where result.is_gone or result.works = (${webhookEndpoints.failingSince} is not null)
    order by ${webhookEndpoints.merchantId}, ${webhookEndpoints.endpointId} for update of ${webhookEndpoints}
  ) as result`;
  return db
    .with(recorded)
    .update(webhookEndpoints)
    .set({ failingSince: sql`result.failing_since`, disabledAt: sql`result.disabled_at` })
    .from(endpoint)
    .where(
      sql`${webhookEndpoints.merchantId} = result.merchant_id and ${webhookEndpoints.endpointId} = result.endpoint_id`,
    )
    .returning({ endpointId: webhookEndpoints.endpointId });
}
