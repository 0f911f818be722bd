import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Client, openClients, type Protocol, protocols } from '@gateway/fixtures/client';
import { fixturesFolder, loadFixtures } from '@gateway/fixtures/load-fixtures';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type OwnGateway, startOwnGateway } from '../src/gateway/own-gateway.ts';
import { replayFixture } from '../src/replay/replay-fixtures.ts';
import { formatDifferences } from '../src/replay/report.ts';
import { testDatabase } from './journaled-run.ts';

const { fixtures, validOrder } = await loadFixtures();

/** Above the deadlines of a fixture's calls, so that a call without a response is reported as a difference. */
const fixtureTimeoutMs = 120_000;

describe('at a gateway of its own', () => {
  let gateway: OwnGateway;
  let clients: Record<Protocol, Client>;

  // Above the bounds of starting and stopping themselves, so that their own messages are reported.
  beforeAll(async () => {
    const merchants = [{ name: 'First' }, { name: 'Second' }, { name: 'Strict', checksumRequired: true }];
    gateway = await startOwnGateway(merchants, new AbortController().signal, testDatabase);
    clients = openClients(gateway);
  }, 120_000);

  afterAll(async () => {
    for (const client of Object.values(clients ?? {})) client.close();
    await gateway?.stop();
  }, 60_000);

  test.for(fixtures)('$file: $name', { timeout: fixtureTimeoutMs }, async (fixture) => {
    const [first, second, strict] = gateway.credentials;
    if (first === undefined || second === undefined || strict === undefined) throw new Error('a merchant is missing');
    const merchants = { first, second, strict };
    const { baseUrl } = gateway;
    const target = { clients, baseUrl, merchants, validOrder, runId: 'test' };
    const replays = await Promise.all(protocols.map((protocol) => replayFixture(fixture, protocol, target)));
    expect(
      replays
        .filter(({ outcome }) => outcome === 'differs')
        .map(formatDifferences)
        .join('\n'),
    ).toBe('');
    expect(replays.filter(({ outcome }) => outcome === 'ok')).not.toEqual([]);
    expect(replays.filter(({ outcome }) => outcome === 'no merchant')).toEqual([]);
  });
});

describe('the command', () => {
  const run = (...args: string[]) =>
    promisify(execFile)(process.execPath, [fileURLToPath(new URL('../src/replay.ts', import.meta.url)), ...args]);

  test('rejects an invalid fixture with its file and the reason before anything is started', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'fixtures-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    await cp(fixturesFolder, folder, { recursive: true });
    await writeFile(
      join(folder, 'create-order', 'broken.json'),
      '{ "name": "x", "calls": [{ "order": {}, "expect": "made" }] }',
    );
    const stderr = 'broken.json: the outcome made is not in outcomes.json\n';
    await expect(run('--fixtures', folder)).rejects.toMatchObject({ code: 2, stdout: '', stderr });
  });

  test('rejects invalid arguments with a message', async () => {
    await expect(run('--http', 'http://localhost')).rejects.toMatchObject({
      code: 2,
      stdout: '',
      stderr: '--http and --grpc must be given together\n',
    });
    await expect(run('--only', 'no such fixture')).rejects.toMatchObject({ code: 2, stdout: '' });
  });

  test('a run that skips all of its fixtures does not pass', async () => {
    // The merchant that they need is not given.
    vi.stubEnv('CLIENT_ID', 'app_1');
    vi.stubEnv('CLIENT_SECRET', 'sk_1');
    onTestFinished(() => void vi.unstubAllEnvs());
    const gateway = ['--http', 'http://127.0.0.1:1', '--grpc', '127.0.0.1:1'];
    await expect(run(...gateway, '--only', 'checksum-required')).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringContaining('0 ok, 0 differ'),
    });
  });
});
