import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Credentials } from '@order-gateway/domain/accounts';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { waitLimitMs } from '../../../tools/test-limits.ts';
import { readText } from '../../../tools/test-resources.ts';
import { startFixtureGateway } from '../src/gateway/own-gateway.ts';

const run = promisify(execFile);
const kit = join(import.meta.dirname, '../conformance');

/** A folder outside the workspace, in which the packed kit is installed. */
let project: string;

beforeAll(async () => {
  const folder = await mkdtempDisposable(join(tmpdir(), 'conformance-'));
  project = folder.path;
  const cache = ['--cache', join(project, 'npm-cache')];
  await run(process.execPath, [join(kit, 'build-conformance.ts'), join(project, 'package')]);
  await run('npm', ['pack', './package', ...cache], { cwd: project });
  await writeFile(join(project, 'package.json'), '{}');
  const [tarball] = (await readdir(project)).filter((file) => file.endsWith('.tgz'));
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', ...cache, `./${tarball}`], { cwd: project });
  return () => folder.remove();
});

/** Runs the installed kit. Returns its exit code, its output, and the outcome of each test case in its JUnit XML. */
async function conform(args: readonly string[], accounts: Readonly<Record<string, Credentials | undefined>>) {
  const variables = Object.entries(accounts).flatMap(([name, credentials]) => {
    const prefix = name === 'first' ? '' : `${name.toUpperCase()}_`;
    return [
      [`${prefix}CLIENT_ID`, credentials?.clientId],
      [`${prefix}CLIENT_SECRET`, credentials?.clientSecret],
    ];
  });
  const path = `${dirname(process.execPath)}:${process.env.PATH}`;
  const env = { PATH: path, npm_config_cache: join(project, 'npm-cache'), ...Object.fromEntries(variables) };
  const options = { cwd: project, env, timeout: waitLimitMs, maxBuffer: 1e8 };
  const ended = run('npx', ['--no', '--', 'order-gateway-conformance', ...args, '--junit', 'result.xml'], options);
  const { code, stdout, stderr } = await ended.then(
    (output) => ({ code: 0, ...output }),
    (error) => error,
  );
  expect(stderr).toBe('');
  const xml = await readFile(join(project, 'result.xml'), 'utf8');
  const counts = /<testsuites .* tests="(\d+)" failures="(\d+)" skipped="(\d+)">/.exec(xml)?.slice(1).map(Number);
  const cases = xml.matchAll(/<testcase classname="([^"]+)" name="([^:]+): [^"]*"(?:\/>|>(<failure|<skipped))/g);
  const outcomes = new Map([...cases].map(([, folder, file, child]) => [`${folder}/${file}`, child ?? 'passed']));
  return { code, stdout, counts, outcomes };
}

test('the installed kit passes against the gateway', async () => {
  const gateway = await startFixtureGateway(new AbortController().signal);
  onTestFinished(gateway.stop);
  const { httpUrl, grpcAddress, merchants } = gateway;
  // `replay.system.test.ts` tests the same code over the other protocols.
  const conformInJson = () => conform(['--http', httpUrl, '--grpc', grpcAddress, '--protocol', 'json'], merchants);
  const first = await conformInJson();
  // A busy machine can be too slow for the first calls, which open the sessions of PostgreSQL.
  const isLate = / actual +(deadline_exceeded|unavailable)\n/.test(first.stdout);
  const { code, stdout, counts, outcomes } = isLate ? await conformInJson() : first;
  expect(stdout).toMatch(/ 0 differ/);
  expect(code).toBe(0);
  const [tests = 0, failures] = counts ?? [];
  expect(failures).toBe(0);
  expect(tests).toBe(outcomes.size);
  expect(tests).toBeGreaterThan(400);
  expect(outcomes.get('json.cancel-order/cancel-paid')).toBe('passed');
  expect(outcomes.get('json.create-order/checksum-required-wrong')).toBe('passed');
});

test('the installed kit finds the mistakes of the sample server', async () => {
  const account = { clientId: `app_${'1'.repeat(24)}`, clientSecret: `sk_${'2'.repeat(43)}` };
  const env = { CLIENT_ID: account.clientId, CLIENT_SECRET: account.clientSecret };
  const file = join(project, 'node_modules/@order-gateway/conformance/sample-server.mjs');
  const server = spawn(process.execPath, [file, '0'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    server.kill();
    await once(server, 'exit');
  });
  const address = readText(server.stdout);
  await expect.poll(address).toContain('\n');
  const target = ['--http', address().trim(), '--grpc', '127.0.0.1:1', '--protocol', 'json'];
  const { code, outcomes } = await conform(target, { first: account });
  expect(code).toBe(1);
  const outcomeOf = (file: string) => outcomes.get(`json.create-order/${file}`);
  expect(outcomeOf('api-example-in-full')).toBe('passed');
  expect(outcomeOf('replay-same-order')).toBe('passed');
  expect(outcomeOf('conflict-one-field')).toBe('<failure');
  expect(outcomeOf('amount-zero')).toBe('<failure');
  expect(outcomeOf('checksum-required-wrong')).toBe('<skipped');
});
