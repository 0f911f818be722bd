import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { superuser } from './embedded-cluster.ts';
import { failure } from './embedded-process.ts';

/** The database that the users of the server work in. */
export const databaseName = 'gateway';
const pollMs = 50;
// On the loopback, anything slower than this is a server that hangs or stops.
const answerLimitMs = 5_000;
// After a pool's end its server processes need milliseconds to go; after this they are somebody else's.
const departureLimitMs = 2_000;
// The postmaster restarts all its processes after a crash of one within a second or two, on a busy disk in many.
const retakePauseMs = 1_000;
// Any fixed number does: nothing else takes advisory locks in the database `postgres`.
const markLockKey = 5_432_001;

/**
 * One user's mark: a connection that holds a shared advisory lock for as long as the user lives, kill -9 included. Who
 * wants to stop the server takes the same lock alone, so a joiner never gets a server that is about to stop: it waits
 * for the lock, is cut off by the shutdown, and starts the server anew.
 */
export type Mark = { kind: 'taken'; session: postgres.Sql; beginLeaving(): void };

export async function takeMark(
  port: number,
  password: string,
  server: { isThere: () => boolean; onGone: () => void },
): Promise<Mark | { kind: 'refused'; reason: string }> {
  let state: 'new' | 'kept' | 'retaking' | 'leaving' = 'new';
  const session = postgres({
    ...{ host: '127.0.0.1', port, user: superuser, password, database: 'postgres', ssl: false },
    ...{ max: 1, fetch_types: false, onnotice: () => {} },
    connect_timeout: answerLimitMs / 1_000,
    // Without this postgres.js changes the connection every hour or so, and the lock would go with it.
    max_lifetime: null,
    connection: {
      application_name: 'gateway: mark of a user of the embedded postgres',
      lock_timeout: answerLimitMs,
      statement_timeout: answerLimitMs,
    },
    onclose: () => void retake(),
  });

  /** After a crash of one server process the postmaster drops all connections: the mark comes back when the server does. */
  async function retake(): Promise<void> {
    if (state !== 'kept') return;
    state = 'retaking';
    while (state === 'retaking') {
      // All users lose their marks at the same moment, and should not all launch the server at the same one.
      await sleep(retakePauseMs * (1 + Math.random()), undefined, { ref: false });
      if (state !== 'retaking') return;
      if (!server.isThere()) return server.onGone();
      const taken = await session`select pg_advisory_lock_shared(${markLockKey})`.catch(() => undefined);
      if (taken !== undefined && state === 'retaking') state = 'kept';
    }
  }

  try {
    await withLimit(session`select pg_advisory_lock_shared(${markLockKey})`);
    await withLimit(makeDatabase(session));
    state = 'kept';
    return { kind: 'taken', session, beginLeaving: () => (state = 'leaving') };
  } catch (error) {
    await session.end({ timeout: 0 });
    // 28P01 is invalid_password: it will not get better.
    if ((error as { code?: string }).code === '28P01') throw failure('the password file is wrong', String(error));
    return { kind: 'refused', reason: String(error) };
  }
}

/** True means: the lock is held alone, and nobody is connected but us. */
export async function isLastUser(session: postgres.Sql): Promise<boolean> {
  await withLimit(session`select pg_advisory_unlock_shared(${markLockKey})`);
  const [lock] = await withLimit(session`select pg_try_advisory_lock(${markLockKey}) as alone`);
  if (lock?.alone !== true) return false;
  const giveUpAt = performance.now() + departureLimitMs;
  while (performance.now() < giveUpAt) {
    const [others] = await withLimit(session`
      select count(*)::int as connected, coalesce(bool_or(wait_event = 'advisory'), false) as awaited
      from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`);
    if (others?.connected === 0) return true;
    if (others?.awaited === true) return false; // A new user waits for the lock: the server is wanted.
    await sleep(pollMs);
  }
  return false;
}

async function makeDatabase(session: postgres.Sql): Promise<void> {
  const found = await session`select 1 from pg_database where datname = ${databaseName}`;
  if (found.length > 0) return;
  try {
    // template0 can be copied by two at once, template1 only while nobody is connected to it.
    await session`create database ${session(databaseName)} template template0`;
  } catch (error) {
    // Another starter was first: 42P04 duplicate_database, or 23505 unique_violation when both wrote at once.
    if (!['42P04', '23505'].includes((error as { code?: string }).code ?? '')) throw error;
  }
}

/** A query on a server that hangs never settles by itself. */
async function withLimit<T>(answer: PromiseLike<T>): Promise<T> {
  const timer = new AbortController();
  const tooLate = sleep(answerLimitMs, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`no answer from the server within ${answerLimitMs / 1_000} s`);
  });
  try {
    return await Promise.race([answer, tooLate]);
  } finally {
    timer.abort();
  }
}
