import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { endWithThisProcess } from '@order-gateway/dev-postgres/testing';
import { createMigratedDatabase } from '@order-gateway/postgres/testing/migrated-database';
import { expect, test } from 'vitest';

// A process, because the channel to the gateway belongs to it.

test('a checkout whose gateway ends while it starts also ends', async () => {
  const database = await createMigratedDatabase();
  try {
    const child = spawn(process.execPath, [join(import.meta.dirname, '../src/main.ts')], {
      env: {
        PATH: process.env.PATH,
        DATABASE_URL: database.url,
        CHECKOUT_CLIENT_ID: `chk_${'a'.repeat(24)}`,
        CHECKOUT_CLIENT_SECRET: 'sk_',
        CHECKOUT_PORT: '0',
      },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    endWithThisProcess(child);
    const exited = once(child, 'exit');
    child.disconnect();
    // The code is 1 if a busy machine does not finish the start within the time limit of a stop.
    expect(await exited).toEqual([expect.toBeOneOf([0, 1]), null]);
  } finally {
    await database.drop();
  }
});
