import { existsSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, type TestContext, test } from 'vitest';
import manifest from '../../../../../package.json' with { type: 'json' };
import { mustSkip } from '../../../../../tools/skip-if-missing.ts';
import { endProcesses, launch, newClusterDir, stopGracefully } from '../../helpers/gateway-process.ts';
import { exchange, statusesOf } from '../../helpers/raw-http.ts';

afterEach(endProcesses);

/** Starts a gateway that writes its log to `stdout`. */
async function startWith(stdout: 'pipe' | number) {
  const { child, stderr } = launch(['src/main.ts'], { DATA_DIR: await newClusterDir() }, stdout);
  // The banner on standard error appears when the gateway is ready. The ready line in the log may be lost.
  const address = () => /The gateway is running at (\S+)\. Press/.exec(stderr())?.[1] ?? '';
  await expect.poll(address).not.toBe('');
  const url = address();
  return {
    url,
    stderr,
    isLive: async () => (await fetch(`${url}/health/live`)).ok,
    stopReading() {
      child.stdout?.destroy();
      child.stderr?.destroy();
    },
    stop: (skip: TestContext['skip']) => stopGracefully(child, skip),
  };
}

/**
 * Sends `hundreds` times 100 calls in small groups, so that none has to wait. Each call has a log line of at least 200
 * characters.
 */
async function sendCalls(url: string, hundreds = 1): Promise<void> {
  const httpPort = Number(new URL(url).port);
  const calls = Array.from({ length: 25 }, (_, number) => {
    const connection = number === 24 ? 'close' : 'keep-alive';
    const id = `${number}`.padStart(128, '0');
    return `HEAD /docs/proto.tar HTTP/1.1\r\nhost: x\r\nx-request-id: ${id}\r\nconnection: ${connection}\r\n\r\n`;
  });
  for (let batch = 0; batch < 4 * hundreds; batch += 1)
    expect(statusesOf(await exchange({ httpPort }, calls.join('')))).toEqual(calls.map(() => '200'));
}

test('a file gets every log line, including the last ones', async ({ skip }) => {
  const path = join(await newClusterDir(), 'log');
  const file = await open(path, 'a');
  const gateway = await startWith(file.fd);
  await sendCalls(gateway.url);
  await gateway.stop(skip);
  await file.close();
  const lines = (await readFile(path, 'utf8')).trimEnd().split('\n');
  const entries = lines.map((line) => JSON.parse(line));
  expect(entries.filter(({ code }) => code === 'ok')).toHaveLength(100);
  expect(entries.find(({ msg }) => msg === 'ready')).toMatchObject({ version: manifest.version });
  expect(entries.map(({ msg }) => msg)).toContain('stopping');
});

const alwaysFull = '/dev/full';
const noFullDisk = existsSync(alwaysFull) ? undefined : `this machine has no ${alwaysFull}`;

test.skipIf(mustSkip('a log on a full disk', noFullDisk))(
  'on a full disk, only log lines are lost',
  async ({ skip }) => {
    const full = await open(alwaysFull, 'w');
    const gateway = await startWith(full.fd);
    await sendCalls(gateway.url);
    expect(await gateway.isLive()).toBe(true);
    await expect.poll(gateway.stderr).toMatch(/^log lines are lost: .*ENOSPC/m);
    await gateway.stop(skip);
    await full.close();
  },
);

test('a log that nothing reads blocks neither responses nor an orderly stop', async ({ skip }) => {
  const gateway = await startWith('pipe');
  // Nothing reads the pipe. On Linux, it is a pair of sockets that hold 208 KiB (socket(7), wmem_default).
  await sendCalls(gateway.url, 15);
  expect(await gateway.isLive()).toBe(true);
  await gateway.stop(skip);
});

test('if standard output and standard error are closed, only log lines are lost', async ({ skip }) => {
  const gateway = await startWith('pipe');
  gateway.stopReading();
  await sendCalls(gateway.url);
  expect(await gateway.isLive()).toBe(true);
  await gateway.stop(skip);
});
