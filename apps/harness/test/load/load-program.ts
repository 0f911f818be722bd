import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeEach } from 'vitest';
import { waitLimitMs } from '../../../../tools/test-limits.ts';
import { temporaryFolder } from '../../../../tools/test-resources.ts';

export const program = fileURLToPath(new URL('../../src/load.ts', import.meta.url));

/** The folder of the current test. */
export let folder: string;

/** Gives each test of the calling file a folder. */
export function useFolder(): void {
  beforeEach(async () => {
    folder = await temporaryFolder();
  });
}

/**
 * Returns an environment in which a run creates all files in the test's folder, so that the test can check for
 * leftovers.
 */
export function environment(variables: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const { PATH, HOME, NODE_COMPILE_CACHE, TEST_POSTGRES_CLUSTER } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE, TEST_POSTGRES_CLUSTER, TMPDIR: folder, ...variables };
}

/** Runs `pnpm load` to its end. */
export async function load(args: readonly string[], env = environment()) {
  const ended = promisify(execFile)(process.execPath, [program, ...args], { env, timeout: waitLimitMs });
  return ended.then(
    (output) => ({ code: 0, ...output }),
    ({ code, stdout, stderr }) => ({ code: Number(code), stdout: String(stdout), stderr: String(stderr) }),
  );
}
