import { randomBytes } from 'node:crypto';
import { Agent } from 'node:http';
import { type Credentials, createClientId, createClientSecret } from '@order-gateway/domain/accounts';
import { openAccountDirectory } from '@order-gateway/postgres/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAuthenticate } from '../../src/calls/authenticate.ts';
import { openSession, ordinaryCall, sendCall } from '../helpers/grpc/grpc-call.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { credentialHeaders, sendRequest } from '../helpers/send-order.ts';

// Tests whether the time of a rejection reveals what is wrong with the credentials.

/** The average number of calls with each kind of credentials in a test. */
const callsOfKind = 20_000;
const callers = 64;

/**
 * Above this t, the times of two kinds almost certainly differ (Reparaz, Balasch, Verbauwhede: "Dude, is my code
 * constant time?", 2017).
 */
const tMax = 4.5;

const gateway = useGateway();
let directory: ReturnType<typeof openAccountDirectory>;
let valid: Credentials;
let disabled: Credentials;
let revoked: Credentials;
beforeAll(async () => {
  directory = openAccountDirectory({ url: gateway.databaseUrl });
  valid = gateway.credentials;
  disabled = await gateway.accounts.create('Disabled');
  revoked = await gateway.accounts.create('Revoked');
  await gateway.accounts.disable(disabled.clientId);
  const [secret] = (await gateway.accounts.listSecrets(revoked.clientId)) ?? [];
  await gateway.accounts.endSecret(revoked.clientId, secret?.id ?? 0, null);
});
afterAll(() => directory?.close());

const wrongSecret = () => createClientSecret(randomBytes);
const repeated = { clientId: createClientId(randomBytes), clientSecret: wrongSecret() };

/** Returns credentials of each kind. The times of the first kind are compared with those of every other kind. */
const kinds: Readonly<Record<string, () => Credentials>> = {
  'an unknown id': () => ({ clientId: createClientId(randomBytes), clientSecret: wrongSecret() }),
  'the same unknown id again': () => repeated,
  'a wrong secret': () => ({ ...valid, clientSecret: wrongSecret() }),
  'the same wrong secret again': () => ({ ...valid, clientSecret: repeated.clientSecret }),
  'a disabled merchant': () => disabled,
  'a revoked secret': () => revoked,
};

/** Makes calls with credentials of random kinds. Returns the times of each kind, in milliseconds. */
async function measure(reject: (credentials: Credentials, caller: number) => Promise<void>): Promise<number[][]> {
  const times = Object.keys(kinds).map((): number[] => []);
  const caller = async (index: number) => {
    for (let call = 0; call < (callsOfKind * times.length) / callers; call += 1) {
      const kind = Math.floor(Math.random() * times.length);
      const credentials = Object.values(kinds)[kind]?.() ?? repeated;
      const startedAt = performance.now();
      await reject(credentials, index);
      times[kind]?.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, index) => caller(index)));
  return times;
}

/**
 * Returns Welch's t of two samples. Like dudect, ignores times above the 90th percentile of both, because they are
 * noise.
 */
function welchT(first: readonly number[], second: readonly number[]): number {
  const all = [...first, ...second].sort((a, b) => a - b);
  const limit = all[Math.floor(all.length * 0.9)] ?? 0;
  const [a, b] = [first, second].map((times) => {
    const below = times.filter((time) => time < limit);
    const mean = below.reduce((sum, time) => sum + time, 0) / below.length;
    const variance = below.reduce((sum, time) => sum + (time - mean) ** 2, 0) / (below.length - 1);
    return { mean, error: variance / below.length };
  });
  if (a === undefined || b === undefined) throw new Error('nothing was measured');
  return (a.mean - b.mean) / Math.sqrt(a.error + b.error);
}

function expectEqualTimes(where: string, [first = [], ...others]: readonly number[][]): void {
  const ts = others.map((times) => welchT(first, times));
  const report = ts.map((t, index) => `${Object.keys(kinds)[index + 1]} ${t.toFixed(1)}`).join(', ');
  process.stdout.write(`${where}: t of an unknown id and ${report}\n`);
  for (const t of ts) expect(Math.abs(t), report).toBeLessThan(tMax);
}

test('all rejections take the same time in the process', async () => {
  const authenticate = createAuthenticate({ directory, now: Date.now, monotonicNow: () => performance.now() });
  const times = await measure(async (credentials) => {
    expect((await authenticate(credentials, 60_000)).ok).toBe(false);
  });
  expectEqualTimes('in the process', times);
});

test('all rejections take the same time over HTTP', async () => {
  const agent = new Agent({ keepAlive: true });
  const times = await measure(async (credentials) => {
    const { status } = await sendRequest(`${gateway.url}/orders`, { agent, headers: credentialHeaders(credentials) });
    expect(status).toBe(401);
  });
  agent.destroy();
  expectEqualTimes('over HTTP', times);
});

test('all rejections take the same time over gRPC', async () => {
  const sessions = Array.from({ length: callers }, () => openSession(gateway.grpcPort));
  const call = ordinaryCall('any');
  const times = await measure(async (credentials, caller) => {
    const session = sessions[caller];
    if (session === undefined) throw new Error('no session');
    const headers = { ...call.headers, ...credentialHeaders(credentials) };
    expect((await sendCall(session, { ...call, headers })).trailers['grpc-status']).toBe('16');
  });
  for (const session of sessions) session.close();
  expectEqualTimes('over gRPC', times);
});
