import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { temporaryFolder } from '../../../../tools/test-resources.ts';
import { openGatewayDatabase } from './gateway-database.ts';

afterEach(() => vi.unstubAllEnvs());

test.each(['DATABASE_URL', 'DATABASE_URL_FILE'])('%s names the database', async (variable) => {
  const url = 'postgres://gateway@127.0.0.1/orders';
  const file = join(await temporaryFolder(), 'database-url');
  await writeFile(file, `${url}\n`);
  vi.stubEnv('DATABASE_URL', undefined);
  vi.stubEnv(variable, variable === 'DATABASE_URL' ? url : file);
  expect((await openGatewayDatabase()).url).toBe(url);
});
