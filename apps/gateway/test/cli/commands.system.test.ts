import { readdir } from 'node:fs/promises';
import { createTestDatabase } from '@order-gateway/dev-postgres/testing';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { program as checkout } from '../../src/cli/checkout.ts';
import { program as merchant } from '../../src/cli/merchant.ts';
import { program as orders } from '../../src/cli/orders.ts';
import { endProcesses, newDataDir, runProgram, startProcess } from '../helpers/gateway-process.ts';
import { runCommand } from '../helpers/run-command.ts';

afterEach(endProcesses);

test('with MIGRATE=off, the gateway starts only after pnpm migrate has created the schema', async () => {
  const database = await createTestDatabase();
  onTestFinished(database.drop);
  const { host, pathname } = new URL(database.url);
  const variables = { DATABASE_URL: database.url, MIGRATE: 'off' };
  expect(await runProgram('src/main.ts', [], variables)).toEqual({
    code: 1,
    stdout: '',
    stderr: `The database ${host}${pathname} can't be used: it has no schema: run \`migrate\` first\n`,
  });
  expect(await runProgram('src/cli/migrate.ts', [], variables)).toEqual({
    code: 0,
    stdout: 'The database has the schema of this version.\n',
    stderr: `Database: ${host}${pathname}\n`,
  });
  await startProcess(variables);
});

test.each([
  ['merchant list', merchant, ['list']],
  ['merchant webhook show', merchant, ['webhook', 'show', 'app_000000000000000000000000']],
  ['orders export', orders, ['export', 'orders.ndjson', '--before', '2027-01-01T00:00:00Z']],
])('%s creates neither a database nor a schema', async (_name, program, args) => {
  const dataDir = await newDataDir();
  const embedded = await runCommand(program, args, { DATA_DIR: dataDir });
  expect(embedded).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining(`no database in ${dataDir}`) });
  expect(await readdir(dataDir)).toEqual([]);
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  const external = await runCommand(program, args, { DATABASE_URL: url });
  expect(external).toEqual({ code: 1, stdout: '', stderr: expect.stringContaining('run `migrate` first') });
  expect(await runQuery(url, "select to_regclass('public.accounts') as name")).toEqual([{ name: null }]);
});

// tools/help-texts.test.ts runs each program with an unknown option.
test.each([
  ['merchant secret list', merchant, ['secret', 'list', 'x']],
  ['checkout create', checkout, ['create']],
])('%s fails with exit code 2 before it opens the database', async (_name, program, args) => {
  const unreachable = { DATABASE_URL: 'postgres://127.0.0.1:1/none' };
  expect(await runCommand(program, args, unreachable)).toMatchObject({ code: 2, stdout: '' });
});

test('the gateway warns about a variable that resembles one of its own, even if it fails to start', async () => {
  const variables = { METRICS_PORT: '9465', DATABASE_URL: 'postgres://127.0.0.1:1/none' };
  const { code, stdout } = await runProgram('src/main.ts', [], variables);
  expect([code, JSON.parse(stdout)]).toEqual([
    1,
    expect.objectContaining({ variable: 'METRICS_PORT', meant: 'ADMIN_PORT' }),
  ]);
});
