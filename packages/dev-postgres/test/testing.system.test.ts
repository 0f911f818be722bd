import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { freePort, freePorts } from '../src/dev-postgres.ts';
import { createTestDatabase, startTestServer } from '../testing/testing.ts';
import { query } from './server-folder.ts';

const modulePath = new URL('../testing/testing.ts', import.meta.url).href;

async function create(prepare?: (url: string) => Promise<void>): Promise<string> {
  const { url, drop } = await createTestDatabase(prepare);
  onTestFinished(drop);
  return url;
}

test('a new database is empty, or a copy of a template that is prepared once per run', async () => {
  const prepared: string[] = [];
  async function withWords(url: string): Promise<void> {
    prepared.push(url);
    await query(url, `create table words as select 'one' as word`);
  }
  const [empty, ...copies] = await Promise.all([create(), create(withWords), create(withWords)]);
  expect(await query(empty, `select to_regclass('words') as words`)).toEqual([{ words: null }]);
  await query(copies[0] as string, 'delete from words');
  expect(await query(copies[1] as string, 'select word from words')).toEqual([{ word: 'one' }]);
  expect(prepared).toHaveLength(1);
});

test('a template is created again if its preparation failed', async () => {
  let isBroken = true;
  async function brokenOnce(url: string): Promise<void> {
    await query(url, 'create table words (word text)');
    if (isBroken) throw new Error('broken');
  }
  await expect(create(brokenOnce)).rejects.toThrow('broken');
  isBroken = false;
  expect(await query(await create(brokenOnce), 'select * from words')).toEqual([]);
});

test('a port that is kept for a later start is not free for anything else', async () => {
  const [kept] = await freePorts(1);
  expect(await freePort(kept)).not.toBe(kept);
});

test('a separate server is removed with its folder', async () => {
  const [first, second] = await Promise.all([startTestServer(), startTestServer()]);
  expect(first.url).not.toBe(second.url);
  await query(first.url, 'create table words (word text)');
  await Promise.all([first.stop(), second.stop()]);
  expect([first.dataDir, second.dataDir].filter(existsSync)).toEqual([]);
  await expect(query(first.url, 'select 1')).rejects.toThrow('ECONNREFUSED');
});

test.each(['exit', 'SIGKILL'] as const)(
  'a server is removed when the process that started it ends by %s',
  async (end) => {
    const program = `
    const { startTestServer } = await import(${JSON.stringify(modulePath)});
    const { url, dataDir } = await startTestServer();
    console.log(JSON.stringify({ url, dataDir }));
    process.stdin.resume().once('end', () => process.exit());`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface({ input: child.stdout }), 'line');
    const { url, dataDir } = JSON.parse(line);
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
    if (end === 'exit') child.stdin.end();
    else child.kill(end);
    await expect.poll(() => existsSync(dataDir)).toBe(false);
    await expect(query(url, 'select 1')).rejects.toThrow('ECONNREFUSED');
  },
);

test('endWithThisProcess ends a child with its parent, and allows the child to end first', async () => {
  const program = `
    const { endWithThisProcess } = await import(${JSON.stringify(modulePath)});
    const { spawn } = await import('node:child_process');
    const [short, long] = ['0', '600'].map((seconds) => spawn('sleep', [seconds], { stdio: ['ignore', 'inherit', 'ignore'] }));
    for (const child of [short, long]) endWithThisProcess(child);
    short.once('exit', () => console.log('ended'));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child.stdout, 'close');
  await once(createInterface({ input: child.stdout }), 'line');
  child.kill('SIGKILL');
  // `long` inherited the output stream, so the stream closes only when `long` has ended too.
  await closed;
});
