import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { callsOf, playRecording } from './play-recording.ts';
import { readRecording } from './read-recording.ts';

let file: string;

beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), 'recording-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  file = join(folder, 'traffic.ndjson');
});

const credentials = { clientId: 'app_1', clientSecret: 'sk_1' };

function line(offset: number, orderId: string): string {
  const headers = '{ "X-Client-Id": "app_old", "Host": "old.example.com", "X-Request-Id": "r-1" }';
  return `{ "offset_ms": ${offset}, "headers": ${headers}, "body": { "order_id": "${orderId}", "order_amount": 10.00 } }\n`;
}

test('requests keep their digits and headers, and get the credentials of the one who plays them', async () => {
  writeFileSync(file, `${line(0, 'a')}\n${line(10, 'b')}{ "offset_ms": 20.5, "body": "no JSON" }\n`);
  const requests = await readRecording(file);
  expect(requests.map(({ offsetMs }) => offsetMs)).toEqual([0, 10, 20.5]);
  const [first, , third] = callsOf(requests, { credentials, freshOrderIds: false, runId: '1' });
  expect(Buffer.from(first?.body ?? []).toString()).toBe('{"order_id":"a","order_amount":10.00}');
  expect(first?.headers).toEqual({
    ...{ 'content-type': 'application/json', 'x-client-id': 'app_1', 'x-client-secret': 'sk_1', 'x-request-id': 'r-1' },
  });
  expect(third).toMatchObject({ order: undefined, body: Buffer.from('no JSON') });
});

test('fresh order ids are new ones, and the same for a recorded retry', async () => {
  writeFileSync(file, line(0, 'a') + line(1, 'b') + line(2, 'a'));
  const requests = await readRecording(file);
  const idsOf = (runId: string) =>
    callsOf(requests, { credentials, freshOrderIds: true, runId }).map(({ order }) => order?.orderId);
  expect(idsOf('1')).toEqual(['replay-1-0', 'replay-1-1', 'replay-1-0']);
  expect(idsOf('2')).not.toEqual(idsOf('1'));
});

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.for([
  [401, 'unauthenticated', 'unauthenticated'],
  [404, 'not_found', 'not_found'],
  [503, 'invalid_order', 'HTTP 503 with invalid_order'],
] as const)('a replay that is answered %i %s does not pass', async ([status, code, outcome]) => {
  writeFileSync(file, line(0, 'a'));
  const httpUrl = await listen(
    createServer((request, response) => {
      request.resume();
      response.writeHead(status).end(JSON.stringify({ code }));
    }),
  );
  const options = { file, speed: 1, freshOrderIds: false, httpUrl, credentials, runId: '1' };
  const report = await playRecording(await readRecording(file), options, new AbortController().signal);
  expect(report).toMatchObject({ outcomes: [{ outcome, wrong: 1 }], verdict: { passed: false } });
});

test('half the speed takes twice the time, and every answer is told', async () => {
  writeFileSync(file, line(0, 'a') + line(75, 'b') + line(150, 'c'));
  const arrivedMs: number[] = [];
  const server = createServer((request, response) => {
    arrivedMs.push(performance.now());
    request.resume();
    response.writeHead(400).end('{ "code": "invalid_order" }');
  });
  const httpUrl = await listen(server);
  const options = { file, speed: 0.5, freshOrderIds: false, httpUrl, credentials, runId: '1' };
  const beganMs = performance.now();
  const report = await playRecording(await readRecording(file), options, new AbortController().signal);
  expect(report).toMatchObject({ sent: 3, done: 3, outcomes: [{ outcome: 'invalid_order', count: 3 }] });
  const [, , third = 0] = arrivedMs;
  // No call leaves before it is due; how late one arrives is the machine's.
  expect(third - beganMs).toBeGreaterThan(295);
  expect(report.verdict.passed).toBe(true);
});

test.for([
  ['{', 'JSON'],
  ['{ "headers": {}, "body": {} }', 'offset_ms is missing'],
  ['{ "offset_ms": -1, "body": {} }', 'offset_ms must be a number from 0'],
  ['{ "offset_ms": 1, "body": 7 }', 'body must be an object or a text'],
  ['{ "offset_ms": 1, "body": {}, "path": "/" }', 'unknown member path'],
  ['{ "offset_ms": 1, "headers": { "a": 1 }, "body": {} }', 'headers.a must be a text'],
  [line(4, 'a').trim(), 'its offset_ms is less than the one before'],
] as const)('the line %s is refused with its place', async ([bad, reason]) => {
  writeFileSync(file, `${line(5, 'a')}\n${bad}\n`);
  await expect(readRecording(file)).rejects.toThrow(reason);
  await expect(readRecording(file)).rejects.toThrow('traffic.ndjson, line 3: ');
});

test('the command plays a recording at a gateway of its own, and refuses a bad one before anything is started', {
  timeout: 180_000,
}, async () => {
  const program = fileURLToPath(new URL('../replay.ts', import.meta.url));
  const run = (...args: string[]) => promisify(execFile)(process.execPath, [program, ...args], { timeout: 120_000 });
  writeFileSync(file, line(0, 'a') + line(40, 'b'));
  const { stdout } = await run('--speed', '2', '--fresh-order-ids', file);
  expect(stdout).toMatch(/invalid_order +2\n/);
  expect(stdout).toContain('passed');
  const sample = fileURLToPath(new URL('../../recordings/sample.ndjson', import.meta.url));
  const played = await run('--speed', '10', sample);
  expect(played.stdout).toMatch(/created +6\n/);
  expect(played.stdout).toMatch(/replayed +1\n/);
  writeFileSync(file, 'x');
  const bad = { code: 2, stdout: '', stderr: expect.stringContaining('traffic.ndjson, line 1: ') };
  await expect(run(file)).rejects.toMatchObject(bad);
  await expect(run('--speed', '0', file)).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--speed must'),
  });
  await expect(run('--speed', '2')).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('need a FILE') });
});
