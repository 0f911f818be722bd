import type { MerchantId } from '@gateway/domain/merchant';
import { and, asc, desc, eq, getTableColumns, type SQLWrapper, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { type Action, runRecorded, systemActor } from './audit-log.ts';
import { arrayLiteral, openClient } from './client.ts';
import { redact } from './errors.ts';
import type { AdminOptions } from './merchant-admin.ts';
import {
  events,
  isEventOfDelivery,
  livePreviousSecret,
  merchants,
  webhookDeliveries,
  webhookEndpoints,
} from './schema.ts';

/** The secrets of an endpoint as they will be stored, and its signing secret as it was. */
export interface ReencryptedSecrets {
  readonly merchantId: number;
  readonly was: Uint8Array;
  readonly signingSecret: Uint8Array;
  readonly previousSecret: Uint8Array | null;
}

/** For how long deliveries are signed with the previous secret, too. */
export const secretOverlapHours = 24;

/**
 * What operators do with the merchants' webhook endpoints, on one connection made with the first call. Secrets go in and out
 * encrypted. Every change is recorded in the audit log by the same statement. Rejects with errors without values.
 */
export function openWebhookEndpoints({ url, actor = systemActor() }: AdminOptions) {
  const client = openClient({ url, applicationName: 'order-gateway endpoints' }, (db) => db);
  const run = async <Result>(statement: (db: PostgresJsDatabase) => Promise<Result>): Promise<Result> => {
    try {
      return await client.run(statement);
    } catch (error) {
      throw redact(error);
    }
  };
  /** Runs and records a change of the merchant's endpoint. Returns whether it changed something. */
  const change = (
    merchantId: MerchantId,
    action: Omit<Action, 'clientId'>,
    statement: (db: PostgresJsDatabase) => SQLWrapper,
  ) =>
    run(async (db) => {
      const clientId = sql`(select client_id from ${merchants} where id = ${merchantId})`;
      return (await runRecorded(db, statement(db), { ...action, actor, clientId })).length === 1;
    });
  const returned = { merchantId: webhookEndpoints.merchantId };
  return {
    /**
     * The merchant with this client id and its endpoint, if it has one; `undefined` if there is no such merchant. A previous secret
     * that deliveries are no longer signed with is null.
     */
    find: (clientId: string) =>
      run(async (db) => {
        const [found] = await db
          .select({
            merchantId: merchants.id,
            endpoint: { ...getTableColumns(webhookEndpoints), previousSecret: livePreviousSecret },
          })
          .from(merchants)
          .leftJoin(webhookEndpoints, eq(webhookEndpoints.merchantId, merchants.id))
          .where(and(eq(merchants.clientId, clientId), eq(merchants.kind, 'merchant')));
        return found && { merchantId: found.merchantId as MerchantId, endpoint: found.endpoint ?? undefined };
      }),

    /**
     * Sets the merchant's endpoint, enabled unless `disabledAt` is given. A merchant that has an endpoint keeps its signing secret.
     */
    set: (
      merchantId: MerchantId,
      {
        signingSecret,
        ...endpoint
      }: { readonly url: string; readonly signingSecret: Uint8Array; readonly disabledAt?: Date },
    ) =>
      // A path may hold a secret of the receiver.
      change(merchantId, { name: 'webhook.set', details: { host: new URL(endpoint.url).host } }, (db) =>
        db
          .insert(webhookEndpoints)
          .values({ merchantId, signingSecret, ...endpoint })
          .onConflictDoUpdate({
            target: webhookEndpoints.merchantId,
            set: { disabledAt: null, ...endpoint, failingSince: null },
          })
          .returning(returned),
      ),

    /**
     * Replaces the signing secret; the previous one stays valid for {@link secretOverlapHours}. Returns whether the merchant has an
     * endpoint.
     */
    rotate: (merchantId: MerchantId, signingSecret: Uint8Array) =>
      change(merchantId, { name: 'webhook.rotate' }, (db) =>
        db
          .update(webhookEndpoints)
          .set({
            signingSecret,
            previousSecret: sql`${webhookEndpoints.signingSecret}`,
            previousEndsAt: sql`now() + ${secretOverlapHours} * interval '1 hour'`,
          })
          .where(eq(webhookEndpoints.merchantId, merchantId))
          .returning(returned),
      ),

    /** The stored secrets of all endpoints. */
    listSecrets: () =>
      run((db) =>
        db
          .select({
            merchantId: webhookEndpoints.merchantId,
            signingSecret: webhookEndpoints.signingSecret,
            previousSecret: webhookEndpoints.previousSecret,
          })
          .from(webhookEndpoints),
      ),

    /** Stores secrets in another form, unless `was`, the signing secret, was replaced since. Returns of how many endpoints. */
    reencrypt: (endpoints: readonly ReencryptedSecrets[]) =>
      run(async (db) => {
        const array = (pick: (endpoint: ReencryptedSecrets) => Uint8Array | null) =>
          sql`${arrayLiteral(endpoints, (endpoint) => hexOf(pick(endpoint)))}::bytea[]`;
        const merchantIds = sql`${arrayLiteral(endpoints, ({ merchantId }) => merchantId)}::bigint[]`;
        const changed = sql`
          update ${webhookEndpoints} set signing_secret = stored.signing_secret, previous_secret = stored.previous_secret
          from unnest(${merchantIds}, ${array(({ was }) => was)}, ${array(({ signingSecret }) => signingSecret)},
            ${array(({ previousSecret }) => previousSecret)}) as stored (merchant_id, was, signing_secret, previous_secret)
          where ${webhookEndpoints}.merchant_id = stored.merchant_id and ${webhookEndpoints}.signing_secret = stored.was
          returning ${webhookEndpoints}.merchant_id`;
        const details = sql`jsonb_build_object('endpoints', (select count(*) from acted))`;
        return (await runRecorded(db, changed, { name: 'webhook.reencrypt', actor }, { details })).length;
      }),

    /** Removes the endpoint; deliveries that are pending are given up. Returns whether the merchant had one. */
    remove: (merchantId: MerchantId) =>
      change(merchantId, { name: 'webhook.remove' }, (db) =>
        db.delete(webhookEndpoints).where(eq(webhookEndpoints.merchantId, merchantId)).returning(returned),
      ),

    /** At most `limit` deliveries: first those that were not delivered, then the newest. */
    listDeliveries: (merchantId: MerchantId, limit: number) =>
      run((db) =>
        db
          .select({
            eventId: webhookDeliveries.eventId,
            type: events.type,
            createdAt: events.createdAt,
            attempts: webhookDeliveries.attempts,
            deliveredAt: webhookDeliveries.deliveredAt,
            nextAttemptAt: webhookDeliveries.nextAttemptAt,
            lastResult: webhookDeliveries.lastResult,
          })
          .from(webhookDeliveries)
          .innerJoin(events, isEventOfDelivery)
          .where(eq(webhookDeliveries.merchantId, merchantId))
          .orderBy(asc(sql`${webhookDeliveries.deliveredAt} is not null`), desc(webhookDeliveries.transactionId))
          .limit(limit),
      ),

    /**
     * Queues an event again as if it were new, also one of the time before the endpoint was set. Returns whether the merchant has
     * such an event and an endpoint that is not disabled.
     */
    redeliver: (merchantId: MerchantId, eventId: string) =>
      change(
        merchantId,
        { name: 'webhook.redeliver', details: { event_id: eventId } },
        () => sql`
          insert into ${webhookDeliveries} (merchant_id, transaction_id, event_id, attempts, next_attempt_at)
          select event.merchant_id, event.transaction_id, event.event_id, 0, now()
          from ${events} as event join ${webhookEndpoints} as endpoint using (merchant_id)
          where event.merchant_id = ${merchantId} and event.event_id = ${eventId} and endpoint.disabled_at is null
          on conflict (merchant_id, event_id) do update
          set attempts = excluded.attempts, next_attempt_at = excluded.next_attempt_at, delivered_at = null
          returning event_id`,
      ),

    close: () => client.close(),
  };
}

function hexOf(bytes: Uint8Array | null): string | null {
  return bytes && `\\x${Buffer.from(bytes).toString('hex')}`;
}

/** The operations of {@link openWebhookEndpoints}. */
export type WebhookEndpoints = ReturnType<typeof openWebhookEndpoints>;
