import { randomBytes } from 'node:crypto';
import {
  type Credentials,
  createClientId,
  createClientSecret,
  hashSecret,
  liveSecretsMax,
} from '@gateway/domain/credentials';
import type { ChecksumMode } from '@gateway/domain/merchant';
import { and, asc, eq, gt, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { openClient } from './client.ts';
import { isSerializationFailure, withoutValues } from './errors.ts';
import { clientSecrets, isLiveSecret, merchants } from './schema.ts';

/**
 * Counting a client's secrets and adding one is a single statement, serializable so that two operators cannot both add the last
 * one. PostgreSQL then fails one of them, and it runs again.
 */
const settings = { default_transaction_isolation: 'serializable' };
const attemptsMax = 10;

/** A merchant as its operator sees it. */
export interface MerchantAccount {
  readonly name: string;
  readonly clientId: string;
  readonly checksumMode: ChecksumMode;
  readonly createdAt: Date;
  /** How many of its secrets work now. */
  readonly liveSecrets: number;
}

/** A client secret as its operator sees it: never the secret itself. */
export interface SecretAccount {
  /** The number that `secret revoke` takes. */
  readonly id: number;
  readonly createdAt: Date;
  /** `null` while no end is set. */
  readonly endsAt: Date | null;
}

/**
 * What operators do with merchants and their secrets. A new secret is in the answer that made it, and nowhere else. Not for the
 * path of a request. Rejects with an error without values.
 */
export interface MerchantAccounts {
  /** Makes a merchant that has one secret without an end. */
  create(name: string): Promise<Credentials>;
  /** In the order of their creation, at most `limit`, after the one with this client id. */
  list(page: { limit: number; afterClientId?: string }): Promise<MerchantAccount[]>;
  /** From the next time that a process reads the merchant: within a second. */
  setChecksumMode(clientId: string, mode: ChecksumMode): Promise<'done' | 'unknown_client'>;
  /** Adds a secret unless the client has {@link liveSecretsMax} that work already. */
  addSecret(
    clientId: string,
    endsAt: Date | null,
  ): Promise<{ kind: 'added'; id: number; clientSecret: string } | { kind: 'unknown_client' | 'too_many' }>;
  /** In the order of their creation; `undefined` where there is no such client. */
  listSecrets(clientId: string): Promise<SecretAccount[] | undefined>;
  /**
   * Lets a secret end now, or at the given time. An end is only ever brought forward: a secret that is to end sooner already
   * keeps its end, and one that has ended stays as it is.
   */
  endSecret(
    clientId: string,
    secretId: number,
    endsAt: Date | null,
  ): Promise<{ kind: 'ends'; at: Date } | { kind: 'unknown_secret' } | { kind: 'ended_already' }>;
  close(): Promise<void>;
}

/** Opens the accounts on one connection, made with the first call. */
export function openMerchantAccounts({ url }: { readonly url: string }): MerchantAccounts {
  const client = openClient({ url, applicationName: 'order-gateway accounts', settings }, (db) => db);
  const run = async <Answer>(
    statement: (db: PostgresJsDatabase) => Promise<Answer>,
    attempts = attemptsMax,
  ): Promise<Answer> => {
    try {
      return await client.run(statement);
    } catch (error) {
      if (!isSerializationFailure(error) || attempts === 1) throw withoutValues(error);
      return run(statement, attempts - 1);
    }
  };
  return {
    create: (name) => run((db) => insertMerchant(db, name)),
    list: (page) => run((db) => listMerchants(db, page)),
    setChecksumMode: (clientId, mode) => run((db) => setChecksumMode(db, clientId, mode)),
    addSecret: (clientId, endsAt) => run((db) => addSecret(db, clientId, endsAt)),
    listSecrets: (clientId) => run((db) => listSecrets(db, clientId)),
    endSecret: (clientId, secretId, endsAt) => run((db) => endSecret(db, clientId, secretId, endsAt)),
    close: () => client.close(),
  };
}

/** Makes one merchant as {@link MerchantAccounts.create} does, on a connection of its own. */
export async function createMerchant(url: string, name: string): Promise<Credentials> {
  const accounts = openMerchantAccounts({ url });
  try {
    return await accounts.create(name);
  } finally {
    await accounts.close();
  }
}

async function insertMerchant(db: PostgresJsDatabase, name: string): Promise<Credentials> {
  const clientId = createClientId(randomBytes);
  const clientSecret = createClientSecret(randomBytes);
  const secretHash = hashSecret(clientSecret);
  const merchant = db
    .$with('merchant')
    .as(db.insert(merchants).values({ name, clientId }).returning({ id: merchants.id }));
  await db
    .with(merchant)
    .insert(clientSecrets)
    .values({ merchantId: sql`(select id from ${merchant})`, secretHash });
  return { clientId, clientSecret };
}

function listMerchants(
  db: PostgresJsDatabase,
  { limit, afterClientId }: Parameters<MerchantAccounts['list']>[0],
): Promise<MerchantAccount[]> {
  const after = db
    .select({ id: merchants.id })
    .from(merchants)
    .where(eq(merchants.clientId, afterClientId ?? ''));
  return db
    .select({
      name: merchants.name,
      clientId: merchants.clientId,
      checksumMode: merchants.checksumMode,
      createdAt: merchants.createdAt,
      liveSecrets: sql<number>`count(${clientSecrets.id})::int`,
    })
    .from(merchants)
    .leftJoin(clientSecrets, and(eq(clientSecrets.merchantId, merchants.id), isLiveSecret))
    .where(afterClientId === undefined ? undefined : gt(merchants.id, sql`(${after})`))
    .groupBy(merchants.id)
    .orderBy(asc(merchants.id))
    .limit(limit);
}

async function setChecksumMode(
  db: PostgresJsDatabase,
  clientId: string,
  checksumMode: ChecksumMode,
): ReturnType<MerchantAccounts['setChecksumMode']> {
  const changed = await db
    .update(merchants)
    .set({ checksumMode })
    .where(eq(merchants.clientId, clientId))
    .returning({ id: merchants.id });
  return changed.length === 1 ? 'done' : 'unknown_client';
}

async function addSecret(
  db: PostgresJsDatabase,
  clientId: string,
  endsAt: Date | null,
): ReturnType<MerchantAccounts['addSecret']> {
  const clientSecret = createClientSecret(randomBytes);
  const live = db.$count(clientSecrets, and(eq(clientSecrets.merchantId, merchants.id), isLiveSecret));
  const [added] = await db.execute<{ id: string }>(sql`
    insert into ${clientSecrets} (merchant_id, secret_hash, ends_at)
    select ${merchants.id}, ${hashSecret(clientSecret)}::bytea, ${endsAt?.toISOString() ?? null}::timestamptz
    from ${merchants} where ${merchants.clientId} = ${clientId} and ${live} < ${liveSecretsMax}
    returning id`);
  if (added !== undefined) return { kind: 'added', id: Number(added.id), clientSecret };
  const isKnown = (await db.$count(merchants, eq(merchants.clientId, clientId))) === 1;
  return { kind: isKnown ? 'too_many' : 'unknown_client' };
}

async function listSecrets(db: PostgresJsDatabase, clientId: string): Promise<SecretAccount[] | undefined> {
  const rows = await db
    .select({ id: clientSecrets.id, createdAt: clientSecrets.createdAt, endsAt: clientSecrets.endsAt })
    .from(merchants)
    .leftJoin(clientSecrets, eq(clientSecrets.merchantId, merchants.id))
    .where(eq(merchants.clientId, clientId))
    .orderBy(asc(clientSecrets.id));
  if (rows.length === 0) return undefined;
  return rows.flatMap(({ id, createdAt, endsAt }) =>
    id === null || createdAt === null ? [] : [{ id, createdAt, endsAt }],
  );
}

async function endSecret(
  db: PostgresJsDatabase,
  clientId: string,
  secretId: number,
  endsAt: Date | null,
): ReturnType<MerchantAccounts['endSecret']> {
  const merchant = db.select({ id: merchants.id }).from(merchants).where(eq(merchants.clientId, clientId));
  const isMeant = and(eq(clientSecrets.id, secretId), eq(clientSecrets.merchantId, sql`(${merchant})`));
  const wanted = endsAt === null ? sql`now()` : sql`${endsAt.toISOString()}::timestamptz`;
  const ended = await db
    .update(clientSecrets)
    // `least` passes over the null of a secret without an end.
    .set({ endsAt: sql`least(${clientSecrets.endsAt}, ${wanted})` })
    .where(and(isMeant, isLiveSecret))
    .returning({ at: clientSecrets.endsAt });
  const at = ended[0]?.at ?? undefined;
  if (at !== undefined) return { kind: 'ends', at };
  return { kind: (await db.$count(clientSecrets, isMeant)) === 0 ? 'unknown_secret' : 'ended_already' };
}
