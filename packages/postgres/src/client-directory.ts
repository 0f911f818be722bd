import type { ClientLookup, MerchantDirectory, MerchantId } from '@gateway/domain/merchant';
import { and, eq, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { arrayLiteral } from './array-literal.ts';
import { createGroupQueue } from './group-queue.ts';
import { type Lane, openLane } from './lane.ts';
import { clientSecrets, isLiveSecret, merchants } from './schema.ts';
import { statementFailure, withoutValues } from './statement-error.ts';

/** Connections for look-ups: a look-up takes a fraction of a millisecond, and most are answered from the caller's cache. */
const connections = 2;

/**
 * Look-ups in one group: they share a statement of a millisecond or two. A flood of ids that nobody has keeps a process so busy
 * that an answer of the database waits for it ten times as long; with groups of 128, what waited was never worked off.
 */
const groupMax = 1_024;

/**
 * Look-ups that may wait for a connection, over which the answer is `overloaded` at once: more than the clients that a gateway
 * keeps in memory and the strangers that it lets in together, so that strangers take no merchant's place.
 */
const waitingMax = 16_384;

/** The longest that a call may take: nobody waits for a look-up that has no answer by then. */
const lookupTimeoutMs = 5_000;

/** The directory with its connections, {@link connections} at most. */
export interface PostgresClientDirectory extends MerchantDirectory {
  /** Lets what is under way finish, then closes the connections. */
  close(): Promise<void>;
}

type FindClients = ReturnType<typeof prepareFindClients>;

/**
 * Reads merchants and their live secrets. Look-ups that arrive together share a prepared statement; a connection has one
 * statement under way. Connects when the first is made.
 */
export function openClientDirectory(url: string): PostgresClientDirectory {
  const lanes = Array.from({ length: connections }, () =>
    openLane({ url, applicationName: 'order-gateway clients', connectionsMax: 1 }, prepareFindClients),
  );
  const queue = createGroupQueue<Lane<FindClients>, string, ClientLookup>({
    slots: lanes,
    groupMax,
    waitingMax,
    run: findGroup,
  });
  return {
    async findClient(clientId): Promise<ClientLookup> {
      const outcome = await queue.add(clientId, lookupTimeoutMs);
      if (outcome === 'deadline_exceeded') return { kind: 'unavailable' };
      return outcome === 'overloaded' ? { kind: outcome } : outcome;
    },
    async close() {
      await queue.idle();
      await Promise.all(lanes.map((lane) => lane.close()));
    },
  };
}

function prepareFindClients(db: PostgresJsDatabase) {
  return db
    .select({
      clientId: merchants.clientId,
      merchant: { id: merchants.id, name: merchants.name, checksumMode: merchants.checksumMode },
      secret: { hash: clientSecrets.secretHash, endsAt: clientSecrets.endsAt },
    })
    .from(merchants)
    .leftJoin(clientSecrets, and(eq(clientSecrets.merchantId, merchants.id), isLiveSecret))
    .where(sql`${merchants.clientId} = any(${sql.placeholder('clientIds')}::text[])`)
    .prepare('find_clients');
}

async function findGroup(
  lane: Lane<FindClients>,
  clientIds: readonly string[],
): Promise<readonly (ClientLookup | Error)[]> {
  try {
    const rows = await lane.run((find) => find.execute({ clientIds: arrayLiteral(clientIds, (id) => id) }));
    const rowsOf = Map.groupBy(rows, ({ clientId }) => clientId);
    return clientIds.map((clientId) => {
      const [first, ...others] = rowsOf.get(clientId) ?? [];
      if (first === undefined) return { kind: 'unknown' };
      const secrets = [first, ...others].flatMap(({ secret }) =>
        secret === null ? [] : [{ hash: secret.hash, endsAtMs: secret.endsAt?.getTime() ?? null }],
      );
      return {
        kind: 'found',
        client: { merchant: { ...first.merchant, id: first.merchant.id as MerchantId }, secrets },
      };
    });
  } catch (error) {
    const failure = statementFailure(error);
    const outcome = failure === undefined ? withoutValues(error) : { kind: failure };
    return clientIds.map(() => outcome);
  }
}
