import type { AccountId } from '@order-gateway/domain/accounts';
import type { EventType } from '@order-gateway/domain/events';
import { type DeliveryStatus, type EndpointStatus, endpointsMax } from '@order-gateway/domain/webhooks';
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
import { type AdminOptions, openAdministration, type Run, runRedacted } from '../accounts/admin-connection.ts';
import { type Action, type Actor, runRecorded, systemActor } from '../accounts/audit-log.ts';
import { arrayLiteral, patientConnectTimeoutMs } from '../connections/client.ts';
import {
  accounts,
  events,
  isEventOfDelivery,
  livePreviousSecret,
  webhookDeliveries,
  webhookEndpoints,
} from '../schema.ts';
import { leaseSeconds } from './delivery-statements.ts';

/** The secrets of an endpoint as they will be stored, and its signing secret as it was. */
export interface ReencryptedSecrets {
  readonly merchantId: number;
  readonly endpointId: string;
  readonly was: Uint8Array;
  readonly signingSecret: Uint8Array;
  readonly previousSecret: Uint8Array | null;
}

/** For how long deliveries are signed with the previous secret, too. */
export const secretOverlapHours = 24;

/** Deliveries that one call of `redeliverFailed` queues again. */
export const redeliveredMax = 1_000;

/** A page of an endpoint's deliveries, the newest first. */
export interface DeliveryFilter {
  readonly status?: DeliveryStatus | undefined;
  /** Only deliveries after that of this event in the list. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** The operations of {@link openWebhookEndpoints}. */
export type WebhookEndpoints = ReturnType<typeof openWebhookEndpoints>;

/** An endpoint as it is stored. */
export type StoredEndpoint = Awaited<ReturnType<WebhookEndpoints['list']>>[number];

/** A delivery as it is stored. */
export type StoredDelivery = Awaited<ReturnType<WebhookEndpoints['pageOfDeliveries']>>[number];

/** What operators do with the merchants' webhook endpoints, on one connection. Rejects with errors without values. */
export function openWebhookEndpoints({ url, actor = systemActor() }: AdminOptions) {
  const client = openAdministration({ url, connectTimeoutMs: patientConnectTimeoutMs }, 'endpoints');
  const run = runRedacted(client);
  return {
    ...webhookEndpointsOn(run, actor),

    /** The stored secrets of all endpoints. */
    listSecrets: () =>
      run((db) => {
        const { merchantId, endpointId, signingSecret, previousSecret } = webhookEndpoints;
        return db.select({ merchantId, endpointId, signingSecret, previousSecret }).from(webhookEndpoints);
      }),

    /** Stores secrets in another form, unless `was`, the signing secret, was replaced since. Returns of how many endpoints. */
    reencrypt: (endpoints: readonly ReencryptedSecrets[]) =>
      run(async (db) => {
        const array = (pick: (endpoint: ReencryptedSecrets) => Uint8Array | null) =>
          sql`${arrayLiteral(endpoints, (endpoint) => hexOf(pick(endpoint)))}::bytea[]`;
        const merchantIds = sql`${arrayLiteral(endpoints, ({ merchantId }) => merchantId)}::bigint[]`;
        const endpointIds = sql`${arrayLiteral(endpoints, ({ endpointId }) => endpointId)}::text[]`;
        const changed = sql`
          update ${webhookEndpoints} set signing_secret = stored.signing_secret, previous_secret = stored.previous_secret
          from unnest(${merchantIds}, ${endpointIds}, ${array(({ was }) => was)}, ${array(({ signingSecret }) => signingSecret)},
            ${array(({ previousSecret }) => previousSecret)}) as stored (merchant_id, endpoint_id, was, signing_secret, previous_secret)
          where ${webhookEndpoints}.merchant_id = stored.merchant_id and ${webhookEndpoints}.endpoint_id = stored.endpoint_id
            and ${webhookEndpoints}.signing_secret = stored.was
          returning ${webhookEndpoints}.merchant_id`;
        const details = sql`jsonb_build_object('endpoints', (select count(*) from acted))`;
        return (await runRecorded(db, changed, { name: 'webhook.reencrypt', actor }, { details })).length;
      }),

    close: () => client.close(),
  };
}

/**
 * The webhook endpoints of merchants. Secrets go in and out encrypted. Every change is recorded in the audit log by the same
 * statement.
 */
export function webhookEndpointsOn(run: Run, actor: Actor) {
  /** Runs and records a change of a merchant's endpoints. Returns the rows that it returned. */
  const change = <Row extends Record<string, unknown>>(
    merchantId: AccountId,
    action: Omit<Action, 'clientId'>,
    statement: (db: PostgresJsDatabase) => SQLWrapper,
    details?: SQL,
  ) =>
    run((db) => {
      const clientId = sql`(select client_id from ${accounts} where id = ${merchantId})`;
      return runRecorded<Row>(db, statement(db), { ...action, actor, clientId }, details && { details });
    });

  const isEndpoint = (merchantId: AccountId, endpointId: string) =>
    and(eq(webhookEndpoints.merchantId, merchantId), eq(webhookEndpoints.endpointId, endpointId));

  /** The merchant's endpoints, the oldest first, which signs returns. A previous secret that signs nothing any more is null. */
  const list = (merchantId: AccountId) =>
    run((db) =>
      db
        .select({ ...getTableColumns(webhookEndpoints), previousSecret: livePreviousSecret })
        .from(webhookEndpoints)
        .where(eq(webhookEndpoints.merchantId, merchantId))
        .orderBy(asc(webhookEndpoints.createdAt), asc(webhookEndpoints.endpointId)),
    );

  /** Creates an endpoint unless the merchant has {@link endpointsMax}. Returns its id. */
  const create = async (
    merchantId: AccountId,
    {
      url,
      eventTypes = null,
      signingSecret,
      disabledAt = null,
    }: {
      readonly url: string;
      readonly eventTypes?: readonly EventType[] | null | undefined;
      readonly signingSecret: Uint8Array;
      readonly disabledAt?: Date | null | undefined;
    },
  ): Promise<string | undefined> => {
    const types = eventTypes && arrayLiteral(eventTypes, (type) => type);
    const [created] = await change<{ endpoint_id: string }>(
      merchantId,
      // A path may hold a secret of the receiver.
      { name: 'webhook.create', details: { host: new URL(url).host, event_types: eventTypes?.join() ?? null } },
      () => sql`
        insert into ${webhookEndpoints} (merchant_id, endpoint_id, url, event_types, signing_secret, disabled_at)
        select ${merchantId}::bigint, 'we_' || replace(gen_random_uuid()::text, '-', ''), ${url}::text, ${types}::text[],
          ${signingSecret}::bytea, ${disabledAt?.toISOString() ?? null}::timestamptz
        where (select count(*) from ${webhookEndpoints} where merchant_id = ${merchantId}) < ${endpointsMax}
        returning endpoint_id`,
      sql`jsonb_build_object('endpoint', endpoint_id)`,
    );
    return created?.endpoint_id;
  };

  /**
   * Changes an endpoint; members that are absent stay as they are. It keeps its signing secret. Returns whether the merchant has
   * such an endpoint.
   */
  const update = async (
    merchantId: AccountId,
    endpointId: string,
    {
      url,
      eventTypes,
      status,
    }: {
      readonly url?: string | undefined;
      readonly eventTypes?: readonly EventType[] | null | undefined;
      readonly status?: EndpointStatus | undefined;
    },
  ): Promise<boolean> => {
    const details = {
      endpoint: endpointId,
      ...(url !== undefined && { host: new URL(url).host }),
      ...(eventTypes !== undefined && { event_types: eventTypes?.join() ?? null }),
      ...(status !== undefined && { status }),
    };
    // An update of Citus has no `coalesce` with the time.
    const disabledAt = { enabled: null, disabled: sql`least(${webhookEndpoints.disabledAt}, now())` };
    const rows = await change(merchantId, { name: 'webhook.update', details }, (db) =>
      db
        .update(webhookEndpoints)
        .set({
          // One that is always there: a statement must set something.
          endpointId,
          url,
          eventTypes: eventTypes as EventType[] | null | undefined,
          ...(status && { disabledAt: disabledAt[status] }),
          ...((url !== undefined || status === 'enabled') && { failingSince: null }),
        })
        .where(isEndpoint(merchantId, endpointId))
        .returning({ endpointId: webhookEndpoints.endpointId }),
    );
    return rows.length === 1;
  };

  return {
    /** The merchant with this client id and its endpoints as `list` has them; `undefined` if there is no such merchant. */
    find: async (clientId: string) => {
      const [merchant] = await run((db) =>
        db
          .select({ merchantId: accounts.id })
          .from(accounts)
          .where(and(eq(accounts.clientId, clientId), eq(accounts.kind, 'merchant'))),
      );
      if (merchant === undefined) return undefined;
      const merchantId = merchant.merchantId as AccountId;
      const endpoints = await list(merchantId);
      return { merchantId, endpoint: endpoints[0], endpoints };
    },

    list,
    create,
    update,

    /**
     * Replaces the signing secret; the previous one stays valid for {@link secretOverlapHours}. Returns whether the merchant has
     * such an endpoint.
     */
    rotate: async (merchantId: AccountId, endpointId: string, signingSecret: Uint8Array): Promise<boolean> => {
      const rows = await change(merchantId, { name: 'webhook.rotate', details: { endpoint: endpointId } }, (db) =>
        db
          .update(webhookEndpoints)
          .set({
            signingSecret,
            previousSecret: sql`${webhookEndpoints.signingSecret}`,
            previousEndsAt: sql`now() + ${secretOverlapHours} * interval '1 hour'`,
          })
          .where(isEndpoint(merchantId, endpointId))
          .returning({ endpointId: webhookEndpoints.endpointId }),
      );
      return rows.length === 1;
    },

    /** Removes an endpoint; deliveries that are pending are given up. Returns whether the merchant had it. */
    remove: async (merchantId: AccountId, endpointId: string): Promise<boolean> => {
      const rows = await change(merchantId, { name: 'webhook.remove', details: { endpoint: endpointId } }, (db) =>
        db
          .delete(webhookEndpoints)
          .where(isEndpoint(merchantId, endpointId))
          .returning({ endpointId: webhookEndpoints.endpointId }),
      );
      return rows.length === 1;
    },

    /** A page of the deliveries to one endpoint. */
    pageOfDeliveries: (merchantId: AccountId, endpointId: string, { status, after, limit }: DeliveryFilter) =>
      run((db) =>
        db
          .select(deliveryColumns)
          .from(webhookDeliveries)
          .innerJoin(events, isEventOfDelivery)
          .where(
            and(
              eq(webhookDeliveries.merchantId, merchantId),
              eq(webhookDeliveries.endpointId, endpointId),
              status && hasStatus[status],
              after === undefined ? undefined : lt(webhookDeliveries.eventId, after),
            ),
          )
          .orderBy(desc(webhookDeliveries.eventId))
          .limit(limit),
      ),

    /**
     * Queues an event again as if it were new, also one of the time before the endpoint was set. Returns whether the merchant has
     * such an event and an endpoint that is not disabled.
     */
    redeliver: async (merchantId: AccountId, endpointId: string, eventId: string): Promise<boolean> => {
      const rows = await change(
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
      );
      return rows.length === 1;
    },

    /**
     * Queues again what was not delivered to an enabled endpoint, was attempted at this time or later, and is not in flight: at most
     * {@link redeliveredMax} deliveries, the oldest first. Returns how many.
     */
    redeliverFailed: async (merchantId: AccountId, endpointId: string, since: Date): Promise<number> => {
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
        sql`jsonb_build_object('deliveries', (select count(*) from acted))`,
      );
      return rows.length;
    },
  };
}

const deliveryColumns = {
  endpointId: webhookDeliveries.endpointId,
  eventId: webhookDeliveries.eventId,
  type: events.type,
  createdAt: events.createdAt,
  attempts: webhookDeliveries.attempts,
  lastAttemptAt: webhookDeliveries.lastAttemptAt,
  deliveredAt: webhookDeliveries.deliveredAt,
  nextAttemptAt: webhookDeliveries.nextAttemptAt,
  lastResult: webhookDeliveries.lastResult,
};

const hasStatus: Readonly<Record<DeliveryStatus, SQL | undefined>> = {
  pending: isNotNull(webhookDeliveries.nextAttemptAt),
  delivered: isNotNull(webhookDeliveries.deliveredAt),
  failed: and(isNull(webhookDeliveries.nextAttemptAt), isNull(webhookDeliveries.deliveredAt)),
};

/** The status of a stored delivery. */
export function deliveryStatusOf(delivery: {
  readonly deliveredAt: Date | null;
  readonly nextAttemptAt: Date | null;
}): DeliveryStatus {
  if (delivery.deliveredAt !== null) return 'delivered';
  return delivery.nextAttemptAt === null ? 'failed' : 'pending';
}

function hexOf(bytes: Uint8Array | null): string | null {
  return bytes && `\\x${Buffer.from(bytes).toString('hex')}`;
}
