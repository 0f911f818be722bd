import { randomBytes } from 'node:crypto';
import { type AccountId, type ConsoleRole, consoleLimits, hashSecret } from '@order-gateway/domain/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AccountAdmin, openAccountAdmin } from '../../src/accounts/account-admin.ts';
import { openConsoleSessions } from '../../src/accounts/console-sessions.ts';
import { openMerchantManagement } from '../../src/merchant-management.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;
const database = useTestDatabase();
let sessions: ReturnType<typeof openConsoleSessions>;
let accounts: AccountAdmin;
let management: ReturnType<typeof openMerchantManagement>;

beforeAll(() => {
  sessions = openConsoleSessions(database.options);
  accounts = openAccountAdmin(database.options);
  management = openMerchantManagement(database.options);
});
afterAll(() => Promise.all([sessions?.close(), accounts?.close(), management?.close()]));

const newDigest = () => new Uint8Array(randomBytes(32));
const newMerchant = async () => (await accounts.create('Shop')).clientId;

async function newLink(clientId: string, name = 'Ada', role: ConsoleRole = 'manage'): Promise<Uint8Array> {
  return hashSecret((await accounts.createConsoleLink(clientId, { name, role })) ?? '');
}

/** Signs in, and returns the digest of the session. */
async function signIn(clientId: string, name?: string, role?: ConsoleRole): Promise<Uint8Array> {
  const digest = newDigest();
  const signedIn = await sessions.signIn(await newLink(clientId, name, role), digest, undefined, enoughMs);
  expect(signedIn).toEqual({ kind: 'done', value: true });
  return digest;
}

const isLive = async (digest: Uint8Array) => {
  const found = await sessions.find(digest, enoughMs);
  return found.kind === 'done' && found.value !== undefined;
};

const nothing = { kind: 'done', value: undefined };

async function actionsOf(clientId: string): Promise<unknown[]> {
  const log = await accounts.log({ clientId, after: 0, limit: 100 });
  return log.slice(1).map(({ actor, action, details }) => [actor, action, details]);
}

test('a link works once, even if two people use it at the same time', async () => {
  const clientId = await newMerchant();
  const link = await newLink(clientId, 'Ada', 'read');
  const digests = [newDigest(), newDigest()];
  const outcomes = await Promise.all(digests.map((digest) => sessions.signIn(link, digest, undefined, enoughMs)));
  expect(outcomes).toEqual(expect.arrayContaining([{ kind: 'done', value: true }, nothing]));
  expect(await sessions.signIn(link, newDigest(), undefined, enoughMs)).toEqual(nothing);
  const live = await Promise.all(digests.map(isLive));
  expect(live.toSorted()).toEqual([false, true]);
  expect((await actionsOf(clientId)).slice(1)).toEqual([['console:Ada', 'console.sign_in', { role: 'read' }]]);
});

test('a link expires after 15 minutes, and does not work for a disabled merchant', async () => {
  const clientId = await newMerchant();
  const [old, other] = [await newLink(clientId), await newLink(clientId)];
  const age = consoleLimits.linkMs / 1_000;
  await database.sql`update console_links set created_at = now() - ${age} * interval '1 second' where token_digest = ${old}`;
  expect(await sessions.signIn(old, newDigest(), undefined, enoughMs)).toEqual(nothing);
  await accounts.disable(clientId);
  expect(await sessions.signIn(other, newDigest(), undefined, enoughMs)).toEqual(nothing);
  expect(await accounts.createConsoleLink(clientId, { name: 'Ada', role: 'read' })).toBeUndefined();
});

test.each([
  ['8 hours', "created_at = now() - interval '8 hours'"],
  ['an hour without use', "last_seen_at = now() - interval '1 hour'"],
])('a session ends after %s', async (_after, change) => {
  const digest = await signIn(await newMerchant());
  expect(await isLive(digest)).toBe(true);
  await database.sql`update console_sessions set ${database.sql.unsafe(change)} where token_digest = ${digest}`;
  expect(await isLive(digest)).toBe(false);
  expect(await sessions.list(digest, enoughMs)).toEqual({ kind: 'done', value: [] });
});

test('lookups of unknown sessions exclude no live session, regardless of how many wait', async () => {
  const digest = await signIn(await newMerchant());
  const unknown = Array.from({ length: 2_000 }, () => sessions.find(newDigest(), enoughMs));
  const [found, listed] = [sessions.find(digest, enoughMs), sessions.list(digest, enoughMs)];
  expect(await found).toMatchObject({ kind: 'done', value: { session: { name: 'Ada' } } });
  expect(await listed).toMatchObject({ kind: 'done', value: [{ name: 'Ada' }] });
  for (const outcome of await Promise.all(unknown)) expect(outcome).toEqual(nothing);
});

test('using a session restarts its idle time of one hour', async () => {
  const digest = await signIn(await newMerchant());
  const isRecentlyUsed = async () => {
    const [row] = await database.sql`
      select (now() - last_seen_at) < interval '5 minutes' as recent from console_sessions where token_digest = ${digest}`;
    return row?.recent;
  };
  await database.sql`update console_sessions set last_seen_at = now() - interval '50 minutes' where token_digest = ${digest}`;
  expect(await isRecentlyUsed()).toBe(false);
  await isLive(digest);
  expect(await isRecentlyUsed()).toBe(true);
});

test('a merchant has at most 20 sessions: the least recently used one ends', async () => {
  const clientId = await newMerchant();
  const digests: Uint8Array[] = [];
  for (let count = 0; count < consoleLimits.sessionsMax; count += 1) digests.push(await signIn(clientId));
  const [first, second] = digests as [Uint8Array, Uint8Array];
  await database.sql`update console_sessions set last_seen_at = now() - interval '1 minute' where token_digest = ${second}`;
  const latest = await signIn(clientId);
  expect([await isLive(first), await isLive(second), await isLive(latest)]).toEqual([true, false, true]);
});

test('a person who signs in often ends only sessions of the same name and role', async () => {
  const clientId = await newMerchant();
  const signInAs = async (name: string, role: ConsoleRole) => {
    const digest = newDigest();
    await sessions.signIn({ clientId, name, role }, digest, undefined, enoughMs);
    return digest;
  };
  const others = [await signInAs('Ada', 'manage'), await signInAs('Cy', 'manage'), await signInAs('Bob', 'manage')];
  const first = await signInAs('Bob', 'read');
  for (let count = 0; count < consoleLimits.sessionsMax; count += 1) await signInAs('Bob', 'read');
  expect(await Promise.all([...others, first].map(isLive))).toEqual([true, true, true, false]);
});

test('a sign-in ends the session that it replaces, but a rejected one ends none', async () => {
  const clientId = await newMerchant();
  const [replaced, other, latest] = [await signIn(clientId), await signIn(clientId), newDigest()];
  expect(await sessions.signIn(newDigest(), latest, replaced, enoughMs)).toEqual(nothing);
  expect(await isLive(replaced)).toBe(true);
  await sessions.signIn(await newLink(clientId), latest, replaced, enoughMs);
  expect(await Promise.all([replaced, other, latest].map(isLive))).toEqual([false, true, true]);
});

test('disabling a merchant ends its sessions and links permanently, but not those of other merchants', async () => {
  const [clientId, otherId] = [await newMerchant(), await newMerchant()];
  const [digest, other] = [await signIn(clientId), await signIn(otherId)];
  const [link, otherLink] = [await newLink(clientId), await newLink(otherId)];
  await accounts.disable(clientId);
  await accounts.enable(clientId);
  expect([await isLive(digest), await isLive(other)]).toEqual([false, true]);
  expect(await sessions.signIn(link, newDigest(), undefined, enoughMs)).toEqual(nothing);
  expect(await sessions.signIn(otherLink, newDigest(), undefined, enoughMs)).toEqual({ kind: 'done', value: true });
});

describe('a link that a session created does not work after', () => {
  const isIn = (digest: Uint8Array) => database.sql`token_digest = ${digest}`;
  test.each<[string, (session: Uint8Array, clientId: string) => Promise<unknown>]>([
    ['the session signs out', (session) => sessions.end(session, 'own', enoughMs)],
    [
      'a manager ends the session',
      async (session, clientId) => {
        const [row] = await database.sql`select id from console_sessions where ${isIn(session)}`;
        await sessions.end(await signIn(clientId), { other: Number(row?.id) }, enoughMs);
      },
    ],
    ['everyone is signed out', async (_, clientId) => sessions.end(await signIn(clientId), 'all', enoughMs)],
    [
      'another sign-in replaces the session',
      async (session, clientId) => sessions.signIn(await newLink(clientId), newDigest(), session, enoughMs),
    ],
    [
      'the session expires',
      (session) =>
        database.sql`update console_sessions set created_at = now() - interval '8 hours' where ${isIn(session)}`,
    ],
  ])('%s', async (_after, endSession) => {
    const clientId = await newMerchant();
    const [session, link, otherLink] = [await signIn(clientId), newDigest(), newDigest()];
    for (const digest of [link, otherLink]) {
      await sessions.createLink(session, digest, { name: 'Cy', role: 'manage' }, enoughMs);
    }
    expect(await sessions.signIn(otherLink, newDigest(), undefined, enoughMs)).toEqual({ kind: 'done', value: true });
    await endSession(session, clientId);
    expect(await sessions.signIn(link, newDigest(), undefined, enoughMs)).toEqual(nothing);
  });
});

test('signing everyone out ends the unused links of an operator too', async () => {
  const clientId = await newMerchant();
  const link = await newLink(clientId);
  await sessions.end(await signIn(clientId), 'all', enoughMs);
  expect(await sessions.signIn(link, newDigest(), undefined, enoughMs)).toEqual(nothing);
});

test('a manager lists sessions, ends them and invites colleagues, but only of the same merchant', async () => {
  const [clientId, otherId] = [await newMerchant(), await newMerchant()];
  const [manager, clerk, other] = [
    await signIn(clientId, 'Ada'),
    await signIn(clientId, 'Bob', 'read'),
    await signIn(otherId, 'Eve'),
  ];
  const listed = await sessions.list(manager, enoughMs);
  const names = listed.kind === 'done' ? listed.value?.map(({ name, role }) => [name, role]) : undefined;
  expect(names).toEqual([
    ['Bob', 'read'],
    ['Ada', 'manage'],
  ]);
  const [{ id = 0 } = {}] = (listed.kind === 'done' && listed.value) || [];
  expect(await sessions.end(other, { other: id }, enoughMs)).toEqual(nothing);
  expect(await sessions.end(clerk, { other: id }, enoughMs)).toEqual(nothing);
  expect(await sessions.end(clerk, 'all', enoughMs)).toEqual(nothing);
  expect(await isLive(clerk)).toBe(true);
  expect(await sessions.end(manager, { other: id }, enoughMs)).toEqual({ kind: 'done', value: true });
  expect([await isLive(clerk), await isLive(manager)]).toEqual([false, true]);
  const link = newDigest();
  const colleague = { name: 'Cy', role: 'read' } as const;
  expect(await sessions.createLink(manager, link, colleague, enoughMs)).toEqual({ kind: 'done', value: true });
  const invited = newDigest();
  await sessions.signIn(link, invited, undefined, enoughMs);
  expect(await sessions.createLink(invited, newDigest(), colleague, enoughMs)).toEqual(nothing);
  expect(await sessions.end(manager, 'all', enoughMs)).toEqual({ kind: 'done', value: true });
  expect([await isLive(invited), await isLive(manager), await isLive(other)]).toEqual([false, false, true]);
  expect((await actionsOf(clientId)).slice(4)).toEqual([
    ['console:Ada', 'console.sign_out', { role: 'manage' }],
    ['console:Ada', 'console.link', { for: 'Cy', for_role: 'read', role: 'manage' }],
    ['console:Cy', 'console.sign_in', { role: 'read' }],
    ['console:Ada', 'console.sign_out_all', { role: 'manage' }],
  ]);
});

test('only a live session of a manager records actions and changes settings, under the name of the manager', async () => {
  const clientId = await newMerchant();
  const [manager, clerk] = [await signIn(clientId, 'Ada'), await signIn(clientId, 'Bob', 'read')];
  const action = { name: 'order.cancel', details: { order_id: '1' } };
  const addSecret = (sessionDigest: Uint8Array) =>
    management.perform(
      { merchantId: 0 as AccountId, clientId, clientSecret: '', sessionDigest },
      (managed) => managed.addSecret(clientId, null),
      enoughMs,
    );
  expect(await sessions.record(clerk, action, enoughMs)).toEqual(nothing);
  expect(await addSecret(clerk)).toEqual({ kind: 'unauthenticated' });
  expect(await sessions.record(manager, action, enoughMs)).toEqual({ kind: 'done', value: true });
  expect(await addSecret(manager)).toMatchObject({ kind: 'done', value: { kind: 'added' } });
  await sessions.end(manager, 'own', enoughMs);
  expect(await sessions.record(manager, action, enoughMs)).toEqual(nothing);
  expect(await addSecret(manager)).toEqual({ kind: 'unauthenticated' });
  expect((await actionsOf(clientId)).slice(4)).toMatchObject([
    ['console:Ada', 'order.cancel', { order_id: '1', role: 'manage' }],
    ['console:Ada', 'secret.add', { role: 'manage' }],
    ['console:Ada', 'console.sign_out', { role: 'manage' }],
  ]);
});
