import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pnpm } from '../../../../tools/pnpm.ts';
import { temporaryFolder } from '../../../../tools/test-resources.ts';
import { thisTree } from '../../src/gateway/gateway-process.ts';

/** The subject of the commit that released 1.0.0. */
const releaseSubject = 'chore(release): 1.0.0';

/**
 * Returns the revision of the release 1.0.0: its tag, or else the commit with its subject. Returns `undefined` if the
 * history has neither, as in a shallow clone. UPGRADE_FROM overrides the revision.
 */
export function findRelease(): string | undefined {
  if (process.env.UPGRADE_FROM) return process.env.UPGRADE_FROM;
  try {
    const [tag] = git(['tag', '--list', '1.0.0', 'v1.0.0']).split('\n');
    if (tag) return tag;
    const commits = git(['log', '--fixed-strings', `--grep=${releaseSubject}`, '--format=%H %s']).split('\n');
    return commits.find((line) => line.endsWith(` ${releaseSubject}`))?.split(' ', 1)[0];
  } catch {
    return undefined;
  }
}

/**
 * Writes the files of a revision into a new folder, with the dependencies that its gateway needs. If they differ from
 * those of this working tree, pnpm installs them. Returns the folder. Throws if the installation fails.
 */
export async function checkOut(revision: string): Promise<string> {
  const folder = await temporaryFolder();
  const index = { GIT_INDEX_FILE: join(folder, '.index') };
  git(['read-tree', revision], index);
  git(['checkout-index', '--all', `--prefix=${folder}/`], index);
  const lockFile = (tree: string) => readFileSync(join(tree, 'pnpm-lock.yaml'), 'utf8');
  if (lockFile(folder) === lockFile(thisTree)) linkDependencies(folder);
  else {
    const install = 'install --prefer-offline --prod --no-optional --frozen-lockfile --filter gateway...';
    execFileSync('sh', ['-c', `${pnpm} ${install}`], { cwd: folder, stdio: 'pipe' });
  }
  return folder;
}

/**
 * Links the packages of this working tree, which has the same lock file. Copies the links between the packages of the
 * workspace, because they are relative.
 */
function linkDependencies(folder: string): void {
  symlinkSync(join(thisTree, 'node_modules'), join(folder, 'node_modules'));
  for (const links of globSync('{apps,packages}/*/node_modules', { cwd: thisTree })) {
    mkdirSync(dirname(join(folder, links)), { recursive: true });
    cpSync(join(thisTree, links), join(folder, links), { recursive: true, verbatimSymlinks: true });
  }
}

function git(args: readonly string[], variables: NodeJS.ProcessEnv = {}): string {
  const options = { cwd: thisTree, env: { ...process.env, ...variables }, encoding: 'utf8', stdio: 'pipe' } as const;
  return execFileSync('git', args, options).trim();
}
