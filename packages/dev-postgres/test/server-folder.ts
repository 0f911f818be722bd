import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type postgres from 'postgres';
import { afterEach, beforeEach, expect } from 'vitest';
import { type DevPostgres, startDevPostgres } from '../src/dev-postgres.ts';
import { listProcesses } from '../testing/processes.ts';
import { copyTestCluster, withSession } from '../testing/testing.ts';

const modulePath = new URL('../src/dev-postgres.ts', import.meta.url).href;

/** A user of the server in this process, with the messages that it logged. */
export interface User extends DevPostgres {
  readonly reports: string[];
}

let parent: string;
let users: User[] = [];
let children: ChildProcess[] = [];

/**
 * Gives each test of the calling file a folder with a new cluster. Afterwards, ends all processes that the test
 * started, and removes the folder.
 */
export function useServerFolder(): void {
  beforeEach(async () => {
    // Other users cannot enter this folder. The server must start nevertheless when root runs the tests.
    parent = await realpath(await mkdtemp(join(tmpdir(), 'dev-postgres-test-')));
    await chmod(parent, 0o700);
    await mkdir(dataDir());
    await copyTestCluster(dataDir());
  });

  afterEach(async () => {
    for (const child of children) child.kill('SIGKILL');
    const stops = await Promise.allSettled(users.map(({ stop }) => stop()));
    [users, children] = [[], []];
    for (const pid of serverPids()) process.kill(pid, 'SIGINT');
    await expect.poll(serverPids).toEqual([]);
    await rm(parent, { recursive: true, force: true });
    // This check is last, so that everything is removed even if a stop failed.
    expect(stops.filter(({ status }) => status === 'rejected')).toEqual([]);
  });
}

/** The data folder of this test. */
export function dataDir(): string {
  return join(parent, 'data');
}

/** Removes the folder, so that the next start of this test creates it and its cluster. */
export function removeCluster(): Promise<void> {
  return rm(dataDir(), { recursive: true });
}

export async function start(): Promise<User> {
  const reports: string[] = [];
  const log = (fields: object, message: string) => void reports.push([message, ...Object.values(fields)].join(': '));
  const user = { ...(await startDevPostgres({ dataDir: dataDir(), logger: { info: log, error: log } })), reports };
  users.push(user);
  return user;
}

/** Starts a process that uses the server until the standard input of the process ends. */
export async function startElsewhere(): Promise<{ child: ChildProcess; url: string }> {
  const program = `
    const { startDevPostgres } = await import(${JSON.stringify(modulePath)});
    const { url, stop } = await startDevPostgres({ dataDir: ${JSON.stringify(dataDir())} });
    console.log(url);
    process.stdin.resume().once('end', stop);`;
  const child = startNode(program);
  const [url] = await once(createInterface({ input: child.stdout }), 'line');
  return { child, url };
}

/**
 * Runs a module in a Node.js process that has its own process group, like a command in a shell. Ctrl-C signals the
 * whole group.
 */
function startNode(program: string) {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  children.push(child);
  return child;
}

/** The pid of the server, from its lock file. Throws while the file is empty: a signal to 0 would end the tests. */
export function serverPid(): number {
  const pid = Number(readFileSync(join(dataDir(), 'postgres/cluster/postmaster.pid'), 'utf8').split('\n')[0]);
  if (!(pid > 0)) throw new Error('postmaster.pid is empty');
  return pid;
}

/**
 * The pids of this test's servers among all processes. Zombies are not included, because they have no command line.
 */
export function serverPids(): number[] {
  const cluster = join(dataDir(), 'postgres/cluster');
  return listProcesses().flatMap(({ pid, command }) => (command.includes(` ${cluster} `) ? [pid] : []));
}

/** Runs one statement on a separate connection. */
export function query(url: string, text: string): Promise<readonly postgres.Row[]> {
  return withSession(url, async (session) => [...(await session.unsafe(text))]);
}
