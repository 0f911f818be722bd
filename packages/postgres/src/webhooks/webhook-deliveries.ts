import type { AccountId, MerchantMode } from '@gateway/domain/accounts/account';
import type { OrderEvent } from '@gateway/domain/orders/order-store';
import { and, eq, isNull, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from '../batches/batch-queue.ts';
import {
  arrayLiteral,
  type DatabaseClient,
  type DatabaseOptions,
  openClient,
  plansEveryRun,
} from '../connections/client.ts';
import { redact, statementFailure } from '../connections/errors.ts';
import { orderOf, storedColumns } from '../orders/order-rows.ts';
import {
  accounts,
  events,
  isEventOfDelivery,
  livePreviousSecret,
  orders,
  webhookDeliveries,
  webhookEndpoints,
} from '../schema.ts';

/**
 * How long a claimed delivery belongs to its process, in seconds: longer than an attempt and the storing of its result. If the
 * process dies, another one claims the delivery after this time.
 */
export const leaseSeconds = 25;

/** Results that may wait for the connection: more than deliveries that a process has in flight. */
const waitingMax = 4_096;

/** How long the storing of a result may take. If it fails, the event is delivered again. */
const recordTimeoutMs = 5_000;

/** The identity of an endpoint. */
export interface EndpointKey {
  readonly merchantId: AccountId;
  readonly endpointId: string;
}

/** The identity of an endpoint as one text. */
export function endpointKeyOf({ merchantId, endpointId }: EndpointKey): string {
  return `${merchantId} ${endpointId}`;
}

/** Where and how an event is delivered. */
export interface DeliveryEndpoint {
  readonly url: string;
  /** Encrypted, the current one first; two for a day after a rotation. */
  readonly signingSecrets: readonly Uint8Array[];
}

/** A delivery that this process may attempt now. */
export interface ClaimedDelivery extends EndpointKey {
  readonly mode: MerchantMode;
  readonly event: OrderEvent;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** Absent: the merchant has removed the endpoint, or it was disabled. */
  readonly endpoint: DeliveryEndpoint | undefined;
}

/** Which deliveries to claim. */
export interface ClaimFilter {
  /** Whether the deliveries of failing (or no) endpoints are claimed, or those of all others. */
  readonly failing: boolean;
  /** Deliveries in flight that an endpoint may have at most. */
  readonly perEndpoint: number;
  /** Deliveries that each endpoint has in flight, by {@link endpointKeyOf}; they count as part of `perEndpoint`. */
  readonly inFlight: ReadonlyMap<string, number>;
  /** Only endpoints after this one; absent: all. */
  readonly after?: EndpointKey | undefined;
  readonly limit: number;
}

/** The result of an attempt. The text is for the merchant and holds nothing of a response but its status. */
export type AttemptResult = { readonly text: string } & (
  | { readonly kind: 'delivered' | 'given_up' | 'endpoint_gone' }
  | { readonly kind: 'retry'; readonly afterSeconds: number }
);

interface RecordedAttempt {
  readonly delivery: ClaimedDelivery;
  readonly result: AttemptResult;
}

/** The queue of webhook deliveries with its connection. */
export interface WebhookDeliveries {
  /**
   * Claims due deliveries, the endpoints in the order of their merchants and ids. Returns none while the database is not reachable; rejects
   * only because of a bug.
   */
  claim(filter: ClaimFilter): Promise<readonly ClaimedDelivery[]>;
  /** Stores a result, unless another process claimed the delivery since. Rejects only because of a bug. */
  record(delivery: ClaimedDelivery, result: AttemptResult): Promise<void>;
  /**
   * Returns how long the oldest delivery to a working endpoint has been due, in seconds; 0 if none is due, `undefined` while the
   * database is not reachable. An endpoint that fails has one attempt at a time, so that its deliveries may wait.
   */
  overdueSeconds(): Promise<number | undefined>;
  /** Lets running calls finish, then closes the connection. */
  close(): Promise<void>;
}

type Statements = ReturnType<typeof prepareStatements>;

/** Opens the queue. Any number of processes may work on it. */
export function openWebhookDeliveries(options: DatabaseOptions): WebhookDeliveries {
  const client = openClient(
    { ...options, applicationName: 'order-gateway webhooks', settings: plansEveryRun },
    prepareStatements,
  );
  const queue = createBatchQueue<DatabaseClient<Statements>, RecordedAttempt, { kind: 'recorded' }>({
    name: 'webhooks',
    meter: options.meter,
    clients: [client],
    batchMax: 128,
    waitingMax,
    async run(client, attempts) {
      await client.run(({ record }) => record.execute(recordParameters(attempts)));
      return attempts.map(() => ({ kind: 'recorded' }));
    },
  });
  return {
    async claim({ failing, perEndpoint, inFlight, after, limit }) {
      const busy = JSON.stringify(Object.fromEntries(inFlight));
      try {
        const rows = await client.run(({ claim }) =>
          claim.execute({
            ...{ failing, perEndpoint, busy, limit },
            afterMerchant: after?.merchantId ?? 0,
            afterEndpoint: after?.endpointId ?? '',
          }),
        );
        return rows.map(({ merchantId, endpointId, mode, attempt, event, order, endpoint }) => ({
          merchantId: merchantId as AccountId,
          endpointId,
          mode,
          attempt,
          event: { ...event, createdAtMs: event.createdAt.getTime(), order: orderOf(order) },
          endpoint: endpoint === null ? undefined : { url: endpoint.url, signingSecrets: secretsOf(endpoint) },
        }));
      } catch (error) {
        if (statementFailure(error) === undefined) throw redact(error);
        return [];
      }
    },
    async overdueSeconds() {
      try {
        const [row] = await client.run(({ overdue }) => overdue.execute());
        return row?.seconds ?? 0;
      } catch (error) {
        if (statementFailure(error) === undefined) throw redact(error);
        return undefined;
      }
    },
    async record(delivery, result) {
      await queue.add({ delivery, result }, recordTimeoutMs);
    },
    close: queue.close,
  };
}

function secretsOf(endpoint: { readonly signingSecret: Uint8Array; readonly previousSecret: Uint8Array | null }) {
  return [endpoint.signingSecret, endpoint.previousSecret].filter((secret) => secret !== null);
}

function recordParameters(attempts: readonly RecordedAttempt[]) {
  return {
    merchantIds: arrayLiteral(attempts, ({ delivery }) => delivery.merchantId),
    endpointIds: arrayLiteral(attempts, ({ delivery }) => delivery.endpointId),
    eventIds: arrayLiteral(attempts, ({ delivery }) => delivery.event.eventId),
    attempts: arrayLiteral(attempts, ({ delivery }) => delivery.attempt),
    urls: arrayLiteral(attempts, ({ delivery }) => delivery.endpoint?.url ?? null),
    kinds: arrayLiteral(attempts, ({ result }) => result.kind),
    afterSeconds: arrayLiteral(attempts, ({ result }) => (result.kind === 'retry' ? result.afterSeconds : null)),
    texts: arrayLiteral(attempts, ({ result }) => result.text),
  };
}

function prepareStatements(db: PostgresJsDatabase) {
  return { claim: prepareClaim(db), overdue: prepareOverdue(db), record: prepareRecord(db) };
}

/** Names the endpoints after one that have pending deliveries `pending`: one look into the index for each. */
function withPending(afterMerchant: SQL, afterEndpoint: SQL): SQL {
  const nextEndpoint = (merchantId: SQL, endpointId: SQL) => sql`
    select merchant_id, endpoint_id from ${webhookDeliveries}
    where ${webhookDeliveries.nextAttemptAt} is not null and (merchant_id, endpoint_id) > (${merchantId}, ${endpointId})
    order by merchant_id, endpoint_id limit 1`;
  return sql`with recursive pending (merchant_id, endpoint_id) as (
    (${nextEndpoint(afterMerchant, afterEndpoint)})
    union all
    select following.* from pending
    cross join lateral (${nextEndpoint(sql`pending.merchant_id`, sql`pending.endpoint_id`)}) as following
  )`;
}

function prepareOverdue(db: PostgresJsDatabase) {
  const oldest = sql`(
    ${withPending(sql`0`, sql`''`)}
    select due.next_attempt_at from pending
    join ${webhookEndpoints} on ${webhookEndpoints.merchantId} = pending.merchant_id
      and ${webhookEndpoints.endpointId} = pending.endpoint_id and ${isNull(webhookEndpoints.disabledAt)} and ${isNull(webhookEndpoints.failingSince)}
    cross join lateral (
      select next_attempt_at from ${webhookDeliveries}
      where merchant_id = pending.merchant_id and endpoint_id = pending.endpoint_id and next_attempt_at is not null
      order by next_attempt_at limit 1
    ) as due
  ) as oldest`;
  return db
    .select({ seconds: sql<number>`greatest(0, extract(epoch from now() - min(next_attempt_at)))::float8` })
    .from(oldest)
    .prepare('overdue_deliveries');
}

/**
 * Goes from endpoint to endpoint through the index of pending deliveries and takes the due ones of each, up to the limits, so
 * that the backlog of one endpoint costs the others nothing. PostgreSQL reads no further endpoint once it has enough rows. The form
 * allows no plan that reads other events or orders of a merchant, whatever the statistics of the tables: due rows by their place, no
 * third table in a join, one look at each endpoint.
 */
function prepareClaim(db: PostgresJsDatabase) {
  const limit = sql`${sql.placeholder('limit')}::int`;
  const inFlight = sql`coalesce((${sql.placeholder('busy')}::jsonb ->> (pending.merchant_id || ' ' || pending.endpoint_id))::int, 0)`;
  const due = sql`(
    ${withPending(sql`${sql.placeholder('afterMerchant')}::bigint`, sql`${sql.placeholder('afterEndpoint')}::text`)}
    select due.id from pending
    cross join lateral (
      select (
        select failing_since is not null from ${webhookEndpoints}
        where merchant_id = pending.merchant_id and endpoint_id = pending.endpoint_id and disabled_at is null
      ) as is_failing offset 0
    ) as endpoint
    cross join lateral (
      select ctid as id from ${webhookDeliveries}
      where merchant_id = pending.merchant_id and endpoint_id = pending.endpoint_id and next_attempt_at <= now()
        and coalesce(endpoint.is_failing, true) = ${sql.placeholder('failing')}::boolean
      order by next_attempt_at
      limit case when endpoint.is_failing is null then ${limit}
        else greatest(0, ${sql.placeholder('perEndpoint')}::int - ${inFlight}) end
      for update skip locked
    ) as due
    limit ${limit}
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
        eventId: events.eventId,
        type: events.type,
        createdAt: events.createdAt,
        order_id: events.order_id,
        mode: sql<MerchantMode>`(select mode from ${accounts} where id = ${webhookDeliveries.merchantId})`.as('mode'),
      }),
  );
  return db
    .with(claimed)
    .select({
      merchantId: claimed.merchantId,
      endpointId: claimed.endpointId,
      attempt: claimed.attempt,
      mode: claimed.mode,
      event: {
        eventId: claimed.eventId,
        type: claimed.type,
        createdAt: claimed.createdAt,
      },
      order: storedColumns,
      endpoint: {
        url: webhookEndpoints.url,
        signingSecret: webhookEndpoints.signingSecret,
        previousSecret: livePreviousSecret,
      },
    })
    .from(claimed)
    .innerJoin(orders, and(eq(orders.merchantId, claimed.merchantId), eq(orders.order_id, claimed.order_id)))
    .leftJoin(
      webhookEndpoints,
      and(
        eq(webhookEndpoints.merchantId, claimed.merchantId),
        eq(webhookEndpoints.endpointId, claimed.endpointId),
        isNull(webhookEndpoints.disabledAt),
      ),
    )
    .prepare('claim_deliveries');
}

/**
 * Stores results, and what they say of the endpoints: one that works now is not failing, one that is gone is disabled, and stays
 * so. A result of an earlier claim, or of another URL than the endpoint has now, changes nothing.
 */
function prepareRecord(db: PostgresJsDatabase) {
  const array = (name: string, type: string) => sql`${sql.placeholder(name)}::${sql.raw(type)}[]`;
  const endpointKeys = sql`${array('merchantIds', 'bigint')}, ${array('endpointIds', 'text')}`;
  const eventKeys = sql`${array('eventIds', 'text')}, ${array('attempts', 'int')}`;
  const results = sql`${array('kinds', 'text')}, ${array('afterSeconds', 'int')}, ${array('texts', 'text')}`;
  const attempts = sql`unnest(${endpointKeys}, ${eventKeys}, ${array('urls', 'text')}, ${results}) as attempt (merchant_id, endpoint_id, event_id, attempts, url, kind, after_seconds, text)`;
  const recorded = db.$with('recorded').as(
    db
      .update(webhookDeliveries)
      .set({
        nextAttemptAt: sql`now() + attempt.after_seconds * interval '1 second'`,
        deliveredAt: sql`case when attempt.kind = 'delivered' then now() end`,
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
  // In the order of their keys, so that two processes can't deadlock.
  const endpoint = sql`(
    select ${webhookEndpoints.merchantId}, ${webhookEndpoints.endpointId}, result.works, result.is_gone
    from (
      select merchant_id, endpoint_id, url, bool_or(kind = 'delivered') as works, bool_or(kind = 'endpoint_gone') as is_gone
      from recorded group by merchant_id, endpoint_id, url
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
    .set({
      failingSince: sql`case when not result.works then coalesce(${webhookEndpoints.failingSince}, now()) end`,
      disabledAt: sql`case when result.is_gone then now() end`,
    })
    .from(endpoint)
    .where(
      sql`${webhookEndpoints.merchantId} = result.merchant_id and ${webhookEndpoints.endpointId} = result.endpoint_id`,
    )
    .prepare('record_deliveries');
}
