import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { json, text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../../../tools/test-resources.ts';
import { environment, folder, load, program, useFolder } from './load-program.ts';

useFolder();

/** Addresses at which nothing listens. */
const nowhere = ['--http', 'http://127.0.0.1:1', '--grpc', '127.0.0.1:1'];
const merchant = { CLIENT_ID: 'app_1', CLIENT_SECRET: 'sk_1' };

test('invalid arguments and files end a run with exit code 2 and a message, without a report or a stack trace', async () => {
  const profile = join(folder, 'mine.json');
  writeFileSync(profile, '{ "phases": [{ "seconds": 1, "rate": -1 }] }');
  const invalid = await load(['--profile', profile]);
  expect(invalid).toEqual({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(/^mine\.json: .*\n.*at phases\[0\]\.rate\n$/),
  });
  const mistakes: [string, string[]][] = [
    ["option '--rate <n>' argument 'many' is invalid", ['--rate', 'many']],
    ["option '--seed <n>' argument '1.5' is invalid", ['--seed', '1.5']],
    ["error: unknown argument 'smoke'\n(Did you mean --profile smoke?)\n", ['smoke']],
    ['the run needs credentials of 1 merchants, but found 0 in CLIENT_ID and CLIENT_SECRET', nowhere],
    ['--credentials requires --http and --grpc', ['--credentials', profile, '--duration', '1s']],
    ['mine.json already exists, and a journal belongs to one run', ['--journal', profile]],
    ['EISDIR', ['--html', folder]],
    ['--compare needs two files', ['--compare', profile]],
    ['mine.json is not a report of `load --json`', ['--compare', profile, profile]],
    ['The profiles are burst, ', ['--profile', 'nope']],
  ];
  const ended = await Promise.all(mistakes.map(([, args]) => load(args)));
  for (const [index, { code, stdout, stderr }] of ended.entries()) {
    const [message = ''] = mistakes[index] ?? [];
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(message) });
    expect(stderr).not.toMatch(/^ +at .*\(/m);
  }
  const audited = await load([...nowhere, '--audit'], environment({ ...merchant, DATA_DIR: folder }));
  expect(audited).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no database in') });
});

test('load --help lists the profiles', async () => {
  const { stdout } = await load(['--help']);
  for (const profile of ['burst', 'lifecycle', 'smoke', 'soak', 'steady']) expect(stdout).toContain(profile);
});

test('a run whose audit fails is still reported, and does not pass', async () => {
  const json = join(folder, 'run.json');
  const args = [...nowhere, '--json', json, '--duration', '1s', '--audit'];
  const { code, stderr } = await load(args, environment({ ...merchant, DATABASE_URL: 'postgres://127.0.0.1:1/none' }));
  expect(code).toBe(1);
  expect(stderr).toContain('the audit failed: ');
  const { sent, verdict } = JSON.parse(readFileSync(json, 'utf8'));
  expect(sent).toBe(100);
  expect(verdict).toMatchObject({ passed: false, judged: [{ threshold: 'lost', limit: 0, passed: false }] });
});

test('if the journal cannot grow, the run ends, reports the calls so far and does not pass', async () => {
  let calls = 0;
  const server = createServer(async (request, response) => {
    // The run asks for the gateway's version.
    if (request.method === 'GET') return void response.writeHead(404).end();
    const { order_id } = Object(await json(request));
    calls += 1;
    const order = { service_order_id: calls, order_id, order_token: 't', payment_link: '/payment/t' };
    // The first five calls never get a response.
    if (calls <= 5) return;
    response.writeHead(201).end(JSON.stringify({ ...order, created_at: 'now', order_status: 'UN_PAID' }));
  });
  const target = ['--http', `http://127.0.0.1:${await listen(server)}`, '--grpc', '127.0.0.1:1'];
  const args = [...target, '--rate', '20', '--duration', '10m', '--journal', join(folder, 'run.ndjson')];
  // No file may grow beyond 16 of the shell's blocks, so the journal is full after a few seconds.
  const limited = spawn('sh', ['-c', 'ulimit -f 16; exec "$@"', 'sh', process.execPath, program, ...args], {
    env: environment(merchant),
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  onTestFinished(() => void limited.kill('SIGKILL'));
  const [stdout] = await Promise.all([text(limited.stdout), once(limited, 'exit')]);
  expect(stdout).toMatch(/^The run ended early: (?:the journal took \d+ of \d+ bytes|EFBIG)/);
  expect(stdout).toMatch(/done +[1-9]/);
  expect(Number(/pending at the end +(\d+)/.exec(stdout)?.[1])).toBeGreaterThanOrEqual(5);
  expect(limited.exitCode).toBe(1);
});

test('a run that misses a threshold has exit code 1', async () => {
  const profile = join(folder, 'mine.json');
  writeFileSync(profile, '{ "phases": [{ "seconds": 1, "rate": 20 }], "thresholds": { "error_rate": 0.5 } }');
  const { code, stdout } = await load([...nowhere, '--profile', profile], environment(merchant));
  expect(code).toBe(1);
  expect(stdout).toContain('no response: ECONNREFUSED');
  expect(stdout).toMatch(/error_rate +1 +at most 0.5 +MISSED/);
});
