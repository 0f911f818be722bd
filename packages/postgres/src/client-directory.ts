import type { ClientDirectory, ClientLookup } from '@gateway/domain/client-directory';
import type { MerchantId } from '@gateway/domain/merchant';
import { and, eq, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { openLane } from './lane.ts';
import { clientSecrets, isLiveSecret, merchants } from './schema.ts';
import { statementFailure, withoutValues } from './statement-error.ts';

/** Connections for look-ups: a look-up takes a fraction of a millisecond, and most are answered from the caller's cache. */
const connectionsMax = 2;

/** The directory with its connections, {@link connectionsMax} at most. */
export interface PostgresClientDirectory extends ClientDirectory {
  /** Ends the connections; look-ups under way get a second. */
  close(): Promise<void>;
}

/** Reads merchants and their live secrets, one prepared statement a look-up. Connects when the first is made. */
export function openClientDirectory(url: string): PostgresClientDirectory {
  const lane = openLane({ url, applicationName: 'order-gateway clients', connectionsMax }, prepareFindClient);
  return {
    async findClient(clientId): Promise<ClientLookup> {
      try {
        const rows = await lane.run((findClient) => findClient.execute({ clientId }));
        const merchant = rows[0]?.merchant;
        if (merchant === undefined) return { kind: 'unknown' };
        const secrets = rows.flatMap(({ secret }) =>
          secret === null ? [] : [{ hash: secret.hash, endsAtMs: secret.endsAt?.getTime() ?? null }],
        );
        return { kind: 'found', client: { merchant: { ...merchant, id: merchant.id as MerchantId }, secrets } };
      } catch (error) {
        const failure = statementFailure(error);
        if (failure === undefined) throw withoutValues(error);
        return { kind: failure };
      }
    },
    close: () => lane.close(),
  };
}

function prepareFindClient(db: PostgresJsDatabase) {
  return db
    .select({
      merchant: { id: merchants.id, name: merchants.name, checksumMode: merchants.checksumMode },
      secret: { hash: clientSecrets.secretHash, endsAt: clientSecrets.endsAt },
    })
    .from(merchants)
    .leftJoin(clientSecrets, and(eq(clientSecrets.merchantId, merchants.id), isLiveSecret))
    .where(eq(merchants.clientId, sql.placeholder('clientId')))
    .prepare('find_client');
}
