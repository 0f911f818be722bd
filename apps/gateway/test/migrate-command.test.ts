import { createTestDatabase } from '@gateway/dev-postgres/testing';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { endProcesses, runProgram, startProcess } from './gateway-process.ts';

afterEach(endProcesses);

test('with MIGRATE=off a start needs the schema that pnpm migrate makes', async () => {
  const database = await createTestDatabase();
  onTestFinished(database.drop);
  const { host, pathname } = new URL(database.url);
  const variables = { DATABASE_URL: database.url, MIGRATE: 'off' };
  expect(await runProgram('src/main.ts', [], variables)).toEqual({
    code: 1,
    stdout: '',
    stderr: `The database ${host}${pathname} can't be used: it has no schema: run \`pnpm migrate\` first\n`,
  });
  expect(await runProgram('src/cli/migrate.ts', [], variables)).toEqual({
    code: 0,
    stdout: 'The database has the schema of this version.\n',
    stderr: '',
  });
  await startProcess(variables);
});
