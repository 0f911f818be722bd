import { secretOverlapHours } from '@order-gateway/domain/webhooks';
import { sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { livePreviousSecret, webhookEndpoints } from '../../schema.ts';

/**
 * Selects the endpoints of merchants, those of each beginning with the one that signs its return links (`returnSigner`
 * of the domain). Times are in milliseconds since 1970-01-01 UTC.
 */
export function prepareReturnSecrets(db: PostgresJsDatabase) {
  const { merchantId, endpointId, signingSecret, createdAt, disabledAt, previousEndsAt } = webhookEndpoints;
  const overlap = sql`${secretOverlapHours}::int * interval '1 hour'`;
  return db
    .select({
      merchantId,
      signingSecret,
      createdAt,
      previousSecret: livePreviousSecret,
      previousEndsMs: sql<number | null>`extract(epoch from ${previousEndsAt})::float8`,
      /** Set if the endpoint was disabled so recently that its secret still signs, provided that it signed before. */
      endsMs: sql<number | null>`case when ${disabledAt} > now() - ${overlap}
        then extract(epoch from ${disabledAt} + ${overlap})::float8 end`,
    })
    .from(webhookEndpoints)
    .where(sql`${merchantId} = any(${sql.placeholder('merchantIds')}::bigint[])`)
    .orderBy(merchantId, sql`${disabledAt} desc nulls first`, createdAt, endpointId)
    .prepare('find_return_secrets');
}

type Row = Awaited<ReturnType<ReturnType<typeof prepareReturnSecrets>['execute']>>[number];

/**
 * Returns the secrets that sign the return links of each merchant: the current one and, for a day, the one that signed
 * before. Before the current signer, only older endpoints can have signed.
 */
export function returnSecretsByMerchant(rows: readonly Row[]): ReadonlyMap<number, readonly Uint8Array[]> {
  const secrets = new Map<number, readonly Uint8Array[]>();
  for (const [merchantId, [signer, ...others]] of Map.groupBy(rows, ({ merchantId }) => merchantId)) {
    if (signer === undefined) continue;
    const older = others.filter(({ createdAt }) => createdAt < signer.createdAt);
    const former = [
      { secret: signer.previousSecret, endsMs: signer.previousEndsMs },
      ...older.map(({ signingSecret, previousSecret, previousEndsMs, endsMs }) => {
        // A secret that was replaced after the endpoint was disabled ends later than the endpoint.
        const signed = Number(previousEndsMs) > Number(endsMs) ? previousSecret : signingSecret;
        return { secret: endsMs === null ? null : signed, endsMs };
      }),
    ].filter(({ secret }) => secret !== null);
    const [latest] = former.toSorted((a, b) => Number(b.endsMs) - Number(a.endsMs));
    secrets.set(merchantId, [signer.signingSecret, ...(latest?.secret ? [latest.secret] : [])]);
  }
  return secrets;
}
