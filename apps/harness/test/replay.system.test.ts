import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Fixture, fixturesFolder, loadFixtures, type Protocol, protocols } from '@order-gateway/fixtures';
import { waitsForTime } from '@order-gateway/fixtures/replay';
import { type Client, openClients } from '@order-gateway/fixtures/wire';
import { migrateDatabase } from '@order-gateway/postgres/migrate';
import { partition } from '@order-gateway/postgres/testing/partitioned-database';
import { startProductionDatabase } from '@order-gateway/postgres/testing/production-database';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { listen, temporaryFolder } from '../../../tools/test-resources.ts';
import { startFixtureGateway } from '../src/gateway/own-gateway.ts';
import { type Replay, replayFixture } from '../src/replay/replay-fixtures.ts';
import { formatDifferences } from '../src/replay/report.ts';

const { fixtures, validOrder } = await loadFixtures();

/**
 * Starts a partitioned database that gives the gateway only the privileges that it needs. The gateway's own tests use
 * the tables as the migrations create them.
 */
async function startDatabase() {
  const { urlAs, stop } = await startProductionDatabase();
  const url = urlAs('order_gateway_owner');
  await partition(url);
  // Grants the gateway's privileges on the partitioned tables.
  await migrateDatabase(url);
  return { url, gatewayUrl: urlAs('order_gateway'), stop };
}

/** How often a fixture is replayed if the machine was too busy for a call, and the pause before each repetition. */
const runsMax = 6;
const pauseMs = 10_000;

/**
 * Whether a call missed its deadline, PostgreSQL did not open a session in time, or the merchant's last logo was still
 * being decoded.
 */
const isLate = ({ differences }: Replay) =>
  differences.some(({ actual }) => /^(deadline_exceeded|unavailable|rate_limited|resource_exhausted)$/i.test(actual));

describe('a gateway responds as the fixture states', () => {
  let gateway: Awaited<ReturnType<typeof startFixtureGateway>>;
  let clients: Record<Protocol, Client>;

  beforeAll(async () => {
    gateway = await startFixtureGateway(new AbortController().signal, startDatabase);
    clients = openClients(gateway);
  });

  afterAll(async () => {
    for (const client of Object.values(clients ?? {})) client.close();
    await gateway?.stop();
  });

  const replayInAll = (fixture: Fixture, run: number) => {
    const target = { ...gateway, clients, validOrder, runId: `test${run}` };
    return Promise.all(protocols.map((protocol) => replayFixture(fixture, protocol, target)));
  };
  /** Replays a fixture again, with other orders, if the machine was too busy for a call. */
  const replayed = async (fixture: Fixture) => {
    let replays = await replayInAll(fixture, 1);
    for (let run = 2; run <= runsMax && replays.some(isLate); run += 1) {
      await sleep(pauseMs);
      replays = await replayInAll(fixture, run);
    }
    const replayedAs = (expected: Replay['outcome']) => replays.filter(({ outcome }) => outcome === expected);
    expect(replayedAs('differs').map(formatDifferences).join('\n')).toBe('');
    expect(replayedAs('ok')).not.toEqual([]);
    expect(replayedAs('no merchant')).toEqual([]);
  };
  const [waiting, quick] = [fixtures.filter(waitsForTime), fixtures.filter((fixture) => !waitsForTime(fixture))];
  test.for(quick)('$folder/$file: $name', replayed);
  test.concurrent.for(waiting)('$folder/$file: $name', replayed);
});

describe('the command', () => {
  const program = fileURLToPath(new URL('../src/replay.ts', import.meta.url));
  const run = (...args: string[]) => promisify(execFile)(process.execPath, [program, ...args]);

  test('names the file of an invalid fixture and the reason before anything is started', async () => {
    const folder = await temporaryFolder();
    await cp(fixturesFolder, folder, { recursive: true });
    await writeFile(
      join(folder, 'create-order', 'broken.json'),
      '{ "name": "x", "calls": [{ "order": {}, "expect": "made" }] }',
    );
    const stderr = 'create-order/broken.json: the outcome made is not in outcomes.json\n';
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

  const useMerchant = () => {
    vi.stubEnv('CLIENT_ID', 'app_1');
    vi.stubEnv('CLIENT_SECRET', 'sk_1');
    onTestFinished(() => void vi.unstubAllEnvs());
  };
  const nowhere = ['--http', 'http://127.0.0.1:1', '--grpc', '127.0.0.1:1'];

  test('a run that skips all of its fixtures does not pass', async () => {
    // The merchant that these fixtures need is missing.
    useMerchant();
    await expect(run(...nowhere, '--only', 'checksum-required')).rejects.toMatchObject({
      code: 1,
      stdout: expect.stringContaining('0 ok, 0 differ'),
    });
  });

  test('the folder of the JUnit XML is created, and a file that cannot be written is found before a call is sent', async () => {
    useMerchant();
    const folder = await temporaryFolder();
    const [fixture, file] = [['--only', 'amount-zero', '--protocol', 'json'], join(folder, 'reports', 'result.xml')];
    const stdout = expect.stringContaining('0 ok, 1 differ');
    await expect(run(...nowhere, ...fixture, '--junit', file)).rejects.toMatchObject({ code: 1, stdout });
    expect(await readFile(file, 'utf8')).toContain('failures="1"');
    const stderr = expect.stringMatching(/^EISDIR/);
    await expect(run(...nowhere, ...fixture, '--junit', folder)).rejects.toMatchObject({ code: 2, stdout: '', stderr });
  });

  test('Ctrl-C ends a run at once, although fixtures wait for a time', async () => {
    useMerchant();
    const server = createServer();
    const target = ['--http', `http://127.0.0.1:${await listen(server)}`, '--grpc', '127.0.0.1:1'];
    const child = spawn(process.execPath, [program, ...target, '--protocol', 'json'], { stdio: 'ignore' });
    onTestFinished(() => void child.kill('SIGKILL'));
    const exited = once(child, 'exit');
    await once(server, 'request');
    child.kill('SIGINT');
    server.closeAllConnections();
    expect(await exited).toEqual([130, null]);
  });
});
