import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { endProcesses, environment, keepTrackOf, newDataDir, processLimitMs } from './gateway-process.ts';

afterEach(endProcesses, processLimitMs);

/** Starts a gateway whose log goes to `stdout`, and waits until it answers, as its ready line may be lost. */
async function startWith(stdout: 'pipe' | number) {
  const port = await freePort();
  const child = spawn(process.execPath, ['src/main.ts'], {
    cwd: join(import.meta.dirname, '..'),
    env: environment(await newDataDir(), { HTTP_PORT: port }),
    stdio: ['ignore', stdout, 'pipe'],
  });
  keepTrackOf(child);
  let told = '';
  child.stderr?.on('data', (piece) => {
    told += piece;
  });
  const url = `http://127.0.0.1:${port}`;
  const isLive = () =>
    fetch(`${url}/health/live`).then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(isLive).toBe(200);
  return {
    url,
    told: () => told,
    isLive,
    async end() {
      const exit = once(child, 'exit');
      child.kill('SIGTERM');
      return (await exit)[0];
    },
  };
}

async function freePort(): Promise<string> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  return typeof address === 'object' && address !== null ? String(address.port) : '';
}

/** A call that is refused before any work, and makes a line of 200 characters at least. */
async function callRefused(url: string, number: number): Promise<number> {
  const requestId = `${number}`.padStart(128, '0');
  const answer = await fetch(`${url}/order`, { method: 'POST', body: 'x', headers: { 'x-request-id': requestId } });
  await answer.text();
  return answer.status;
}

test('a file gets every line, the last ones too', async () => {
  const path = join(await newDataDir(), 'log');
  const file = await open(path, 'a');
  const gateway = await startWith(file.fd);
  for (let number = 0; number < 100; number += 1) expect(await callRefused(gateway.url, number)).toBe(415);
  expect(await gateway.end()).toBe(0);
  await file.close();
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
  const messages = lines.map((line) => JSON.parse(line).msg);
  expect(messages.filter((message) => message === 'call')).toHaveLength(100);
  expect(messages).toContain('ready');
  expect(messages).toContain('stopping');
}, 120_000);

test.runIf(process.platform === 'linux')(
  'a full disk costs the lines and nothing else',
  async () => {
    const full = await open('/dev/full', 'w');
    const gateway = await startWith(full.fd);
    for (let number = 0; number < 100; number += 1) expect(await callRefused(gateway.url, number)).toBe(415);
    expect(await gateway.isLive()).toBe(200);
    await expect.poll(gateway.told).toMatch(/^log lines are lost: .*ENOSPC/m);
    expect(await gateway.end()).toBe(0);
    await full.close();
  },
  120_000,
);

test('a reader that has stopped keeps the gateway neither from answering nor from ending', async () => {
  const gateway = await startWith('pipe');
  // Nobody reads the pipe, which holds 64 KiB on Linux.
  for (let number = 0; number < 2_000; number += 1) expect(await callRefused(gateway.url, number)).toBe(415);
  expect(await gateway.isLive()).toBe(200);
  expect(await gateway.end()).toBe(0);
}, 120_000);
