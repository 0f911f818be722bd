import { rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { withSession } from '@order-gateway/dev-postgres/testing';
import { afterEach, expect, test } from 'vitest';
import { listen, readText } from '../../../../../tools/test-resources.ts';
import { endProcesses, launch, newClusterDir, newDatabase, runProgram } from '../../helpers/gateway-process.ts';

// What a start prints to standard error if it fails or has to wait.

afterEach(endProcesses);

/** Starts the gateway. Returns functions that return what it has written to each stream so far. */
function launchGateway(variables: Parameters<typeof launch>[1]) {
  const { child, stderr } = launch(['src/main.ts'], variables);
  return { stderr, stdout: readText(child.stdout as Readable) };
}

test('all ports in use are reported together, the HTTP port first', async () => {
  const { databaseUrl } = await newDatabase();
  const [HTTP_PORT, GRPC_PORT, ADMIN_PORT] = await Promise.all([1, 2, 3].map(() => listen(createServer())));
  const ports = { HTTP_PORT: `${HTTP_PORT}`, GRPC_PORT: `${GRPC_PORT}`, ADMIN_PORT: `${ADMIN_PORT}` };
  const lines = Object.entries(ports).map(
    ([variable, port]) => `${variable} ${port} is already in use. Set ${variable} to another port.\n`,
  );
  for (const WORKERS of ['1', '2']) {
    const output = await runProgram('src/main.ts', [], { DATABASE_URL: databaseUrl, WORKERS, ...ports });
    expect(output).toEqual({ code: 1, stdout: '', stderr: lines.join('') });
  }
});

test.each([
  ...(process.platform === 'linux' ? [['that cannot exist', '/proc/x/y', 'ENOENT']] : []),
  ['below a file', join(import.meta.filename, 'x'), 'ENOTDIR'],
  ['that is a file', import.meta.filename, 'ENOTDIR'],
])('a DATA_DIR %s is reported in one line', async (_, folder, code) => {
  const reason = `the folder ${folder} can't be used (${code}): set DATA_DIR to another folder`;
  const { code: exitCode, stderr } = await runProgram('src/main.ts', [], { DATA_DIR: folder });
  expect([exitCode, stderr]).toEqual([1, `The embedded PostgreSQL did not start: ${reason}\n`]);
});

test.each([
  ['src/main.ts', []],
  ['src/cli/merchant.ts', ['list']],
])('%s names the database that it waits for', async (script, args) => {
  const port = await listen(createServer());
  const variables = { DATABASE_URL: `postgres://u:geheim@127.0.0.1:${port}/x`, MIGRATE: 'off' };
  const { child, stderr } = launch([script, ...args], variables);
  await expect.poll(stderr).toContain(`Waiting for the database 127.0.0.1:${port}/x.\n`);
  // An orderly stop would wait for the database too.
  child.kill('SIGKILL');
});

test('a start reports that it waits for the migration of another process', async () => {
  const { databaseUrl } = await newDatabase();
  const { pathname, host } = new URL(databaseUrl);
  const { stdout, stderr } = await withSession(databaseUrl, async (session) => {
    // This is the lock that migrateDatabase takes.
    await session.unsafe("select pg_advisory_lock(x'6f72646572'::bigint)");
    const started = launchGateway({ DATABASE_URL: databaseUrl });
    await expect.poll(started.stderr).toContain(`Waiting for the migration of the database ${host}${pathname}.\n`);
    return started;
  });
  await expect.poll(stdout).toContain('"ready"');
  expect(stderr()).not.toContain('error');
});

test('a start reports that it waits for the embedded PostgreSQL', async () => {
  const dataDir = await newClusterDir();
  // With this file, another process appears to have just started PostgreSQL.
  const pidFile = join(dataDir, 'postgres/cluster/postmaster.pid');
  await writeFile(pidFile, '', { mode: 0o666 });
  const { stdout, stderr } = launchGateway({ DATA_DIR: dataDir });
  await expect.poll(stderr).toContain(`Waiting for the embedded PostgreSQL in ${dataDir}.\n`);
  await rm(pidFile);
  await expect.poll(stdout).toContain('"ready"');
});
