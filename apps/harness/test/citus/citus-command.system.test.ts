import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { missingCitus } from '@order-gateway/dev-postgres/testing/citus';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { expect, onTestFinished, test } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import { temporaryFolder } from '../../../../tools/test-resources.ts';

const program = fileURLToPath(new URL('../../src/citus.ts', import.meta.url));

test.skipIf(mustSkip('pnpm citus', missingCitus()))(
  'pnpm citus runs a cluster until Ctrl-C, and leaves nothing behind',
  async () => {
    const folder = await temporaryFolder();
    const env = { ...process.env, TMPDIR: folder };
    const child = spawn(process.execPath, [program, '--workers', '1'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill());
    const [line] = await once(createInterface({ input: child.stdout }), 'line');
    const url = line.replace('DATABASE_URL=', '');
    const nodes = await runQuery(url, 'select shouldhaveshards from pg_dist_node order by nodeid');
    expect(nodes.map(({ shouldhaveshards }) => shouldhaveshards)).toEqual([false, true]);
    const exited = once(child, 'exit');
    child.kill('SIGINT');
    expect(await exited).toEqual([0, null]);
    expect(readdirSync(folder)).toEqual([]);
    await expect(runQuery(url, 'select')).rejects.toThrow('ECONNREFUSED');
  },
);

test('pnpm citus reports what is missing if Citus is not installed', async () => {
  const env = { ...process.env, PG_CONFIG: '/nonexistent/pg_config' };
  const child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const [[line], [code]] = await Promise.all([
    once(createInterface({ input: child.stderr }), 'line'),
    once(child, 'exit'),
  ]);
  expect([line, code]).toEqual(['/nonexistent/pg_config is not installed: give the source of Citus with --source', 2]);
});
