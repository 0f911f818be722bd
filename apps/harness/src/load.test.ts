import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json, text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeEach, expect, onTestFinished, test } from 'vitest';

const program = fileURLToPath(new URL('load.ts', import.meta.url));
const limitMs = 60_000;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'load-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

/** Everything that a run makes lies in the test's folder, so that what it leaves behind can be seen. */
function environment(more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: folder, ...more };
}

async function load(args: readonly string[], env = environment()) {
  const ended = promisify(execFile)(process.execPath, [program, ...args], { env, timeout: limitMs });
  return ended.then(
    (told) => ({ code: 0, ...told }),
    ({ code, stdout, stderr }) => ({ code: Number(code), stdout: String(stdout), stderr: String(stderr) }),
  );
}

test('a short run at every door passes its thresholds, is audited, and writes its reports', {
  timeout: limitMs,
}, async () => {
  const [jsonFile, htmlFile, journal] = ['run.json', 'run.html', 'run.ndjson'].map((name) =>
    // Folders that are not there yet are made.
    join(folder, name.slice(4), name),
  );
  const files = ['--json', `${jsonFile}`, '--html', `${htmlFile}`, '--journal', `${journal}`];
  const shares = ['--replay-share', '0.1', '--invalid-share', '0.1', '--merchants', '2', '--connections', '2'];
  const rate = ['--protocol', 'mixed', '--rate', '60', '--duration', '2s', '--workers', '2', '--error-rate', '0'];
  const { code, stdout, stderr } = await load([...rate, ...shares, ...files, '--audit', '--seed', '5']);
  expect(`${stdout}${stderr}`).toContain('passed');
  expect(code).toBe(0);
  const report = JSON.parse(readFileSync(`${jsonFile}`, 'utf8'));
  expect(report).toMatchObject({ due: 120, done: 120, errors: 0, audit: { lost: 0, duplicated: 0, changed: 0 } });
  expect(report.outcomes.map(({ outcome }: { outcome: string }) => outcome)).toContain('replayed');
  expect(readFileSync(`${htmlFile}`, 'utf8')).toContain('all thresholds held');
  expect(stdout).toContain(`audit  ${report.audit.acknowledged} acknowledged: 0 lost, 0 duplicated, 0 changed`);
  expect(existsSync(`${journal}`)).toBe(true);
});

test('Ctrl-C ends a run at once with the report of what was done', { timeout: limitMs }, async () => {
  const child = spawn(process.execPath, [program, '--rate', '50', '--duration', '10m', '--audit'], {
    env: environment(),
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let told = '';
  let stdout = '';
  child.stdout.on('data', (piece) => {
    stdout += piece;
  });
  child.stderr.on('data', (piece) => {
    told += piece;
  });
  await expect.poll(() => told, { timeout: 30_000 }).toContain('under way');
  const interruptedAt = performance.now();
  child.kill('SIGINT');
  const [code] = await once(child, 'exit');
  expect(code).toBe(130);
  expect(stdout).toContain('Interrupted: this is what was done until then.');
  expect(stdout).toMatch(/done +\d{2,} /);
  expect(stdout).toContain('0 lost, 0 duplicated, 0 changed');
  // It would have gone on for ten minutes.
  expect(performance.now() - interruptedAt).toBeLessThan(20_000);
});

test('a closed terminal, a second Ctrl-C and a reader who left leave no gateway behind', {
  timeout: 2 * limitMs,
}, async () => {
  const start = (duration: string) =>
    spawn(process.execPath, [program, '--rate', '50', '--duration', duration], { env: environment() });
  const child = start('10m');
  let told = '';
  child.stderr.on('data', (piece) => {
    told += piece;
  });
  await expect.poll(() => told, { timeout: 30_000 }).toContain('under way');
  child.kill('SIGHUP');
  child.kill('SIGINT');
  expect((await once(child, 'exit'))[0]).toBe(130);
  expect(readdirSync(folder)).toEqual([]);

  const unread = start('1s');
  unread.stdout.destroy();
  unread.stderr.destroy();
  expect((await once(unread, 'exit'))[0]).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
});

test('what is at fault is told with exit code 2 before anything is sent', { timeout: limitMs }, async () => {
  const profile = join(folder, 'mine.json');
  writeFileSync(profile, '{ "phases": [{ "seconds": 1, "rate": -1 }] }');
  const told = 'mine.json: phase 1.rate must be a number from 0 to 1000000\n';
  expect(await load(['--profile', profile])).toEqual({ code: 2, stdout: '', stderr: told });
  const given = ['--http', 'http://127.0.0.1:1', '--grpc', '127.0.0.1:1'];
  const faults: [string, string[]][] = [
    ['--rate must be a number', ['--rate', 'many']],
    ['--duration must be a time', ['--duration', '1 hour']],
    ['--burst must be RATE:LENGTH:EVERY', ['--burst', '100']],
    ['--ramp-to and --burst exclude', ['--ramp-to', '5', '--burst', '9:1s:2s']],
    ['--rate must be given too', ['--profile', 'burst', '--duration', '20s']],
    ['must not exceed 1 together', ['--replay-share', '0.6', '--invalid-share', '0.6']],
    ['set CLIENT_ID', given],
    ['--credentials needs --http and --grpc', ['--credentials', profile, '--duration', '1s']],
    ['mine.json is there already, and a journal is of one run', ['--journal', profile]],
    ['EISDIR', ['--html', folder]],
  ];
  for (const [reason, args] of faults) {
    const { code, stdout, stderr } = await load(args);
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(reason) });
  }
  const missing = environment({ CLIENT_ID: 'app_1', CLIENT_SECRET: 'sk_1', DATA_DIR: folder });
  const audited = await load([...given, '--audit'], missing);
  expect(audited).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no database to audit') });
});

test('a run whose audit fails is reported all the same, and does not pass', { timeout: limitMs }, async () => {
  const json = join(folder, 'run.json');
  const given = ['--http', 'http://127.0.0.1:1', '--grpc', '127.0.0.1:1', '--json', json];
  const credentials = { CLIENT_ID: 'app_1', CLIENT_SECRET: 'sk_1', DATABASE_URL: 'postgres://127.0.0.1:1/none' };
  const { code, stderr } = await load([...given, '--duration', '1s', '--audit'], environment(credentials));
  expect(code).toBe(1);
  expect(stderr).toContain('the audit failed: ');
  const { sent, verdict } = JSON.parse(readFileSync(json, 'utf8'));
  expect(sent).toBe(100);
  expect(verdict).toMatchObject({ passed: false, judged: [{ threshold: 'lost', limit: 0, passed: false }] });
});

test('a sending process that dies ends the run with the report of what was done, and it does not pass', {
  timeout: limitMs,
}, async () => {
  let calls = 0;
  const server = createServer(async (request, response) => {
    const { order_id } = Object(await json(request));
    calls += 1;
    // The first ones never get an answer.
    if (calls > 5) response.writeHead(201).end(JSON.stringify({ service_order_id: calls, order_id, order_token: 't' }));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const given = [
    '--http',
    `http://127.0.0.1:${Object(server.address()).port}`,
    '--grpc',
    '127.0.0.1:1',
    '--workers',
    '2',
  ];
  const args = [...given, '--rate', '100', '--duration', '10m', '--journal', join(folder, 'run.ndjson')];
  // No file may grow beyond 16 of the shell's blocks: the journal is full after some seconds.
  const limited = spawn('sh', ['-c', 'ulimit -f 16; exec "$@"', 'sh', process.execPath, program, ...args], {
    env: environment({ CLIENT_ID: 'app_1', CLIENT_SECRET: 'sk_1' }),
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  onTestFinished(() => {
    limited.kill('SIGKILL');
  });
  const [stdout] = await Promise.all([text(limited.stdout), once(limited, 'exit')]);
  expect(stdout).toMatch(/^A sending process died: (?:the journal took \d+ of \d+ bytes|EFBIG)/);
  expect(stdout).toMatch(/done +\d{2,} /);
  expect(Number(/given up +(\d+)/.exec(stdout)?.[1])).toBeGreaterThanOrEqual(5);
  expect(limited.exitCode).toBe(1);
});

test('a threshold that is missed ends a run with 1', { timeout: limitMs }, async () => {
  const { code, stdout } = await load(
    [
      '--http',
      'http://127.0.0.1:1',
      '--grpc',
      '127.0.0.1:1',
      '--rate',
      '20',
      '--duration',
      '1s',
      '--error-rate',
      '0.5',
    ],
    environment({ CLIENT_ID: 'app_1', CLIENT_SECRET: 'sk_1' }),
  );
  expect(code).toBe(1);
  expect(stdout).toContain('no answer: ECONNREFUSED');
  expect(stdout).toMatch(/MISSED +error_rate +1 /);
});
