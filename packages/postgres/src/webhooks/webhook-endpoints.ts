import type { AccountId } from '@order-gateway/domain/accounts';
import type { EventType } from '@order-gateway/domain/events';
import {
  type DeliveryStatus,
  endpointsMax,
  redeliveredMax,
  returnSigner,
  secretOverlapHours,
  type WebhookEndpoint,
  type WebhookStore,
} from '@order-gateway/domain/webhooks';
import { systemActor } from '@order-gateway/runtime/process';
import {
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  isNotNull,
  isNull,
  lt,
  type SQL,
  type SQLWrapper,
  sql,
} from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { findAccount } from '../accounts/account-directory.ts';
import { type AdminOptions, openOperatorClient, type Run } from '../accounts/admin-connection.ts';
import { type Action, type Actor, type AlsoRecorded, runRecorded } from '../accounts/audit-log.ts';
import { arrayLiteral } from '../connections/client.ts';
import { accounts, events, livePreviousSecret, webhookDeliveries, webhookEndpoints } from '../schema.ts';
import { leaseSeconds } from './delivery-statements.ts';

type StoredSecrets = Pick<WebhookEndpoint, 'signingSecret' | 'previousSecret'>;

/** The secrets of an endpoint as they will be stored. `was` are the stored secrets that they replace. */
export interface ReencryptedSecrets extends StoredSecrets, Pick<WebhookEndpoint, 'endpointId'> {
  readonly merchantId: number;
  readonly was: StoredSecrets;
}

/** The operations of {@link openWebhookEndpoints}. */
export type WebhookEndpoints = ReturnType<typeof openWebhookEndpoints>;

/**
 * Opens the operators' administration of webhook endpoints, on one connection. Rejects with errors that contain no
 * values.
 */
export function openWebhookEndpoints({ actor = systemActor(), ...options }: AdminOptions) {
  const { run, ...client } = openOperatorClient(options, 'endpoints');
  const endpoints = webhookEndpointsOn(run, actor);
  return {
    ...endpoints,

    /**
     * Returns the merchant with this client id, its endpoints as `list` returns them, and among them the endpoint that
     * signs return links; `undefined` if there is no such merchant.
     */
    find: async (clientId: string) => {
      const account = await run((db) => findAccount(db, clientId));
      if (account?.kind !== 'merchant') return undefined;
      const found = await endpoints.list(account.id);
      return { merchantId: account.id, endpoint: returnSigner(found), endpoints: found };
    },

    /**
     * Lists at most `limit` endpoints, of any merchant, whose latest attempt failed, beginning with the one that has
     * been failing for the longest time. Reads no secret.
     */
    listFailing: (limit: number) =>
      run((db) =>
        db
          .select({
            merchantId: webhookEndpoints.merchantId,
            endpointId: webhookEndpoints.endpointId,
            url: webhookEndpoints.url,
            failingSince: webhookEndpoints.failingSince,
            disabledAt: webhookEndpoints.disabledAt,
            clientId: accounts.clientId,
            merchantName: accounts.name,
          })
          .from(webhookEndpoints)
          .innerJoin(accounts, eq(accounts.id, webhookEndpoints.merchantId))
          .where(isNotNull(webhookEndpoints.failingSince))
          .orderBy(asc(webhookEndpoints.failingSince), asc(webhookEndpoints.endpointId))
          .limit(limit),
      ),

    /**
     * Returns how many deliveries to an endpoint wait, at most `max`, and the result of the latest attempt among them
     * or, if there is none, of the newest delivery that was given up.
     */
    readBacklog: (merchantId: number, endpointId: string, max: number) =>
      run(async (db) => {
        const { nextAttemptAt, deliveredAt } = webhookDeliveries;
        const ofEndpoint = (state: SQL) => sql`${webhookDeliveries}
          where merchant_id = ${merchantId} and endpoint_id = ${endpointId} and ${state}`;
        // Begins with the deliveries that are due last, because those that were attempted are usually among them.
        const [row] = await db.execute<{ waiting: number; last_result: string | null }>(sql`
          with waiting as materialized (
            select last_attempt_at, last_result from ${ofEndpoint(isNotNull(nextAttemptAt))}
            order by next_attempt_at desc limit ${max}
          )
          select (select count(*)::int from waiting) as waiting, coalesce(
            (select last_result from waiting where last_result is not null order by last_attempt_at desc limit 1),
            (select last_result from ${ofEndpoint(sql`${isNull(nextAttemptAt)} and ${isNull(deliveredAt)}`)}
              order by event_id desc limit 1)
          ) as last_result`);
        return { waiting: row?.waiting ?? 0, lastResult: row?.last_result ?? null };
      }),

    /** Returns the stored secrets of all endpoints. */
    listSecrets: () =>
      run((db) => {
        const { merchantId, endpointId, signingSecret, previousSecret } = webhookEndpoints;
        return db.select({ merchantId, endpointId, signingSecret, previousSecret }).from(webhookEndpoints);
      }),

    /**
     * Stores re-encrypted secrets, unless those of the endpoint no longer equal `was`. Returns the number of changed
     * endpoints.
     */
    reencrypt: (endpoints: readonly ReencryptedSecrets[]) =>
      run(async (db) => {
        const array = (pick: (endpoint: ReencryptedSecrets) => Uint8Array | null) =>
          sql`${arrayLiteral(endpoints, (endpoint) => hexOf(pick(endpoint)))}::bytea[]`;
        const merchantIds = sql`${arrayLiteral(endpoints, ({ merchantId }) => merchantId)}::bigint[]`;
        const endpointIds = sql`${arrayLiteral(endpoints, ({ endpointId }) => endpointId)}::text[]`;
        const changed = sql`
          update ${webhookEndpoints} set signing_secret = stored.signing_secret, previous_secret = stored.previous_secret
          from unnest(${merchantIds}, ${endpointIds}, ${array(({ was }) => was.signingSecret)}, ${array(({ was }) => was.previousSecret)},
            ${array(({ signingSecret }) => signingSecret)}, ${array(({ previousSecret }) => previousSecret)})
            as stored (merchant_id, endpoint_id, was, previous_was, signing_secret, previous_secret)
          where ${webhookEndpoints}.merchant_id = stored.merchant_id and ${webhookEndpoints}.endpoint_id = stored.endpoint_id
            and ${webhookEndpoints}.signing_secret = stored.was and ${webhookEndpoints}.previous_secret is not distinct from stored.previous_was
          returning ${webhookEndpoints}.merchant_id`;
        const details = sql`jsonb_build_object('endpoints', (select count(*) from acted))`;
        return (await runRecorded(db, changed, { name: 'webhook.reencrypt', actor }, { details })).length;
      }),

    ...client,
  };
}

/** Returns the store of webhook endpoints. The statement that makes a change also records it in the audit log. */
export function webhookEndpointsOn(run: Run, actor: Actor): WebhookStore {
  const { change, changeRow } = recordedChangesOn(run, actor);
  return {
    list: (merchantId) =>
      run((db) =>
        db
          .select({ ...getTableColumns(webhookEndpoints), previousSecret: livePreviousSecret })
          .from(webhookEndpoints)
          .where(eq(webhookEndpoints.merchantId, merchantId))
          .orderBy(asc(webhookEndpoints.createdAt), asc(webhookEndpoints.endpointId)),
      ),

    create: async (merchantId, { url, eventTypes = null, signingSecret, disabledAt = null }) => {
      const types = eventTypes && arrayLiteral(eventTypes, (type) => type);
      const [created] = await change<{ endpoint_id: string }>(
        merchantId,
        // Only the host is recorded, because the path may contain a secret of the receiver.
        { name: 'webhook.create', details: { host: new URL(url).host, event_types: eventTypes?.join() ?? null } },
        () => sql`
          insert into ${webhookEndpoints}
            (merchant_id, endpoint_id, url, event_types, signing_secret, disabled_at, previous_secret, previous_ends_at)
          select ${merchantId}::bigint, 'we_' || replace(gen_random_uuid()::text, '-', ''), ${url}::text, ${types}::text[],
            ${signingSecret}::bytea, ${disabledAt?.toISOString() ?? null}::timestamptz, signer.signing_secret, signer.ends_at
          from (select) as new_endpoint left join ${signerOf(merchantId)} as signer on signer.disabled_at is not null
          where (select count(*) from ${webhookEndpoints} where merchant_id = ${merchantId}) < ${endpointsMax}
          returning endpoint_id`,
        { details: sql`jsonb_build_object('endpoint', endpoint_id)` },
      );
      return created?.endpoint_id;
    },

    update: async (merchantId, endpointId, { url, eventTypes, status }) => {
      const details = {
        endpoint: endpointId,
        ...(url !== undefined && { host: new URL(url).host }),
        ...(eventTypes !== undefined && { event_types: eventTypes?.join() ?? null }),
        ...(status !== undefined && { status }),
      };
      // An update on Citus can't use `coalesce` with the time.
      const disabledAt = { enabled: null, disabled: sql`least(${webhookEndpoints.disabledAt}, now())` };
      return changeRow(merchantId, { name: 'webhook.update', details }, (db) =>
        db
          .update(webhookEndpoints)
          .set({
            // Always present, because a statement must set at least one column.
            endpointId,
            url,
            eventTypes: eventTypes as EventType[] | null | undefined,
            ...(status && { disabledAt: disabledAt[status] }),
            ...((url !== undefined || status === 'enabled') && { failingSince: null }),
            ...(status === 'enabled' && {
              previousSecret: sql`coalesce(former.signing_secret, ${webhookEndpoints.previousSecret})`,
              previousEndsAt: sql`case when former.signing_secret is null then ${webhookEndpoints.previousEndsAt} else former.ends_at end`,
            }),
          })
          .from(formerSigner(merchantId, endpointId))
          .where(isEndpoint(merchantId, endpointId))
          .returning({ endpointId: webhookEndpoints.endpointId }),
      );
    },

    rotate: (merchantId, endpointId, signingSecret) =>
      changeRow(merchantId, { name: 'webhook.rotate', details: { endpoint: endpointId } }, (db) =>
        db
          .update(webhookEndpoints)
          .set({
            signingSecret,
            previousSecret: sql`${webhookEndpoints.signingSecret}`,
            previousEndsAt: sql`now() + ${secretOverlapHours} * interval '1 hour'`,
          })
          .where(isEndpoint(merchantId, endpointId))
          .returning({ endpointId: webhookEndpoints.endpointId }),
      ),

    remove: (merchantId, endpointId) =>
      changeRow(
        merchantId,
        { name: 'webhook.remove', details: { endpoint: endpointId } },
        (db) =>
          db
            .delete(webhookEndpoints)
            .where(isEndpoint(merchantId, endpointId))
            .returning({ endpointId: webhookEndpoints.endpointId }),
        { also: [handOverReturns(merchantId, endpointId), endDeliveries(merchantId, endpointId)] },
      ),

    ...endpointDeliveriesOn(run, actor),
  };
}

/** Returns the part of the store that lists and repeats deliveries. */
function endpointDeliveriesOn(
  run: Run,
  actor: Actor,
): Pick<WebhookStore, 'pageOfDeliveries' | 'redeliver' | 'redeliverFailed'> {
  const { change, changeRow } = recordedChangesOn(run, actor);
  return {
    pageOfDeliveries: (merchantId, endpointId, { status, orderId, after, limit }) =>
      run((db) => {
        const ofOrder = db
          .select({ eventId: events.eventId })
          .from(events)
          .where(and(eq(events.merchantId, merchantId), eq(events.order_id, orderId ?? '')));
        // The events are looked up for the deliveries of the page only, regardless of PostgreSQL's estimates for the
        // merchant.
        const page = db
          .select()
          .from(webhookDeliveries)
          .where(
            and(
              eq(webhookDeliveries.merchantId, merchantId),
              eq(webhookDeliveries.endpointId, endpointId),
              status && hasStatus[status],
              after === undefined ? undefined : lt(webhookDeliveries.eventId, after),
              orderId === undefined ? undefined : sql`${webhookDeliveries.eventId} = any(array(${ofOrder}))`,
            ),
          )
          .orderBy(desc(webhookDeliveries.eventId))
          .limit(limit)
          .as('page');
        const { merchantId: _, ...columns } = page._.selectedFields;
        return db
          .select({ ...columns, type: events.type, createdAt: events.createdAt })
          .from(page)
          .innerJoin(events, and(eq(events.merchantId, merchantId), eq(events.eventId, page.eventId)))
          .orderBy(desc(page.eventId));
      }),

    redeliver: (merchantId, endpointId, eventId) =>
      changeRow(
        merchantId,
        { name: 'webhook.redeliver', details: { endpoint: endpointId, event_id: eventId } },
        () => sql`
          insert into ${webhookDeliveries} (merchant_id, endpoint_id, event_id, attempts, next_attempt_at)
          select event.merchant_id, endpoint.endpoint_id, event.event_id, 0, now()
          from ${events} as event join ${webhookEndpoints} as endpoint using (merchant_id)
          where event.merchant_id = ${merchantId} and event.event_id = ${eventId}
            and endpoint.endpoint_id = ${endpointId} and endpoint.disabled_at is null
          on conflict (merchant_id, event_id, endpoint_id) do update
          set attempts = excluded.attempts, next_attempt_at = excluded.next_attempt_at, delivered_at = null
          returning event_id`,
      ),

    redeliverFailed: async (merchantId, endpointId, since) => {
      const from = since.toISOString();
      const rows = await change(
        merchantId,
        { name: 'webhook.redeliver', details: { endpoint: endpointId, failed_since: from } },
        () => sql`
          update ${webhookDeliveries} set attempts = 0, next_attempt_at = now()
          where (merchant_id, event_id, endpoint_id) in (
            select delivery.merchant_id, event_id, delivery.endpoint_id
            from ${webhookDeliveries} as delivery join ${webhookEndpoints} as endpoint using (merchant_id, endpoint_id)
            where delivery.merchant_id = ${merchantId} and delivery.endpoint_id = ${endpointId} and disabled_at is null
              and delivered_at is null and attempts > 0 and last_attempt_at >= ${from}::timestamptz
              and (next_attempt_at is null or next_attempt_at > now() + ${leaseSeconds} * interval '1 second')
            order by event_id limit ${redeliveredMax} for update of delivery skip locked
          )
          returning event_id`,
        { details: sql`jsonb_build_object('deliveries', (select count(*) from acted))` },
      );
      return rows.length;
    },
  };
}

function recordedChangesOn(run: Run, actor: Actor) {
  /** Makes and records a change of a merchant's endpoints. Returns the rows of the statement. */
  const change = <Row extends Record<string, unknown>>(
    merchantId: AccountId,
    action: Omit<Action, 'clientId'>,
    statement: (db: PostgresJsDatabase) => SQLWrapper,
    added?: AlsoRecorded,
  ) =>
    run((db) => {
      const clientId = sql`(select client_id from ${accounts} where id = ${merchantId})`;
      return runRecorded<Row>(db, statement(db), { ...action, actor, clientId }, added);
    });

  /** Makes and records a change of one row. Returns whether a row was changed. */
  const changeRow = async (...args: Parameters<typeof change>) => (await change(...args)).length === 1;

  return { change, changeRow };
}

function isEndpoint(merchantId: AccountId, endpointId: string): SQL | undefined {
  return and(eq(webhookEndpoints.merchantId, merchantId), eq(webhookEndpoints.endpointId, endpointId));
}

/**
 * Selects the endpoint that signs a merchant's return links (`returnSigner` of the domain), optionally as if the
 * merchant did not have one of the endpoints. `ends_at` is when its secret would end if another one replaced it now.
 */
function signerOf(merchantId: AccountId, removedId = ''): SQL {
  return sql`(
    select endpoint_id, signing_secret, created_at, disabled_at, now() + ${secretOverlapHours} * interval '1 hour' as ends_at
    from ${webhookEndpoints} where merchant_id = ${merchantId} and endpoint_id <> ${removedId}
    order by disabled_at desc nulls first, created_at, endpoint_id limit 1
  )`;
}

/**
 * Selects one row: the secret that signs return links until this endpoint is enabled, if the endpoint's own secret will
 * then sign them, and the endpoint has no previous secret.
 */
function formerSigner(merchantId: AccountId, endpointId: string): SQL {
  return sql`(
    select former.signing_secret, former.ends_at from (select) as always left join (
      select signer.* from ${signerOf(merchantId)} as signer, ${webhookEndpoints} as enabled
      where enabled.merchant_id = ${merchantId} and enabled.endpoint_id = ${endpointId}
        and signer.endpoint_id <> enabled.endpoint_id and enabled.disabled_at is not null
        and (signer.disabled_at is not null or enabled.created_at < signer.created_at)
        and (enabled.previous_ends_at is null or enabled.previous_ends_at <= now())
    ) as former on true
  ) as former`;
}

/**
 * Ends the pending deliveries to an endpoint that is removed. On Citus, no claim would find them, because claims look
 * for endpoints with due deliveries.
 */
function endDeliveries(merchantId: AccountId, endpointId: string): SQL {
  return sql`
    update ${webhookDeliveries} set next_attempt_at = null, last_result = 'no endpoint'
    where (merchant_id, event_id, endpoint_id) in (
      select merchant_id, event_id, endpoint_id from ${webhookDeliveries}
      where merchant_id = ${merchantId} and endpoint_id = ${endpointId} and next_attempt_at is not null
      limit ${redeliveredMax} for update skip locked
    )`;
}

/**
 * Gives the secret of an endpoint that is removed to the endpoint that will sign return links, if links were signed
 * with it in the last 24 hours and the other endpoint has no previous secret.
 */
function handOverReturns(merchantId: AccountId, endpointId: string): SQL {
  const overlap = sql`${secretOverlapHours} * interval '1 hour'`;
  // A secret that was replaced after the endpoint was disabled has not signed links. Citus allows only immutable
  // functions in a case, and the difference of two times is one.
  const signed = sql`case when signer.endpoint_id <> removed.endpoint_id and removed.previous_ends_at - removed.disabled_at > ${overlap}
    then removed.previous_secret else removed.signing_secret end`;
  return sql`
    update ${webhookEndpoints} set previous_secret = handed.signing_secret, previous_ends_at = handed.ends_at
    from (
      select successor.endpoint_id, ${signed} as signing_secret, successor.ends_at
      from ${signerOf(merchantId, endpointId)} as successor
      join ${webhookEndpoints} as next on next.merchant_id = ${merchantId} and next.endpoint_id = successor.endpoint_id
      cross join ${signerOf(merchantId)} as signer
      join ${webhookEndpoints} as removed on removed.merchant_id = ${merchantId} and removed.endpoint_id = ${endpointId}
      where (next.previous_ends_at is null or next.previous_ends_at <= now()) and (signer.endpoint_id = removed.endpoint_id
        or removed.disabled_at > now() - ${overlap} and removed.created_at < next.created_at)
    ) as handed
    where ${webhookEndpoints.merchantId} = ${merchantId} and ${webhookEndpoints.endpointId} = handed.endpoint_id`;
}

const hasStatus: Readonly<Record<DeliveryStatus, SQL | undefined>> = {
  pending: isNotNull(webhookDeliveries.nextAttemptAt),
  delivered: isNotNull(webhookDeliveries.deliveredAt),
  failed: and(isNull(webhookDeliveries.nextAttemptAt), isNull(webhookDeliveries.deliveredAt)),
};

function hexOf(bytes: Uint8Array | null): string | null {
  return bytes && `\\x${Buffer.from(bytes).toString('hex')}`;
}
