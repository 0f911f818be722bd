import { cp, symlink } from 'node:fs/promises';
import { basename, join } from 'node:path';

const root = join(import.meta.dirname, '..');

/**
 * Copies a package into a folder, with the files of the workspace that its build needs, and returns its new folder. A
 * package is built in its own folder before it is packed, and two test runs in one checkout would disturb each other.
 */
export async function copyPackage(name: 'client' | 'contract', workspace: string): Promise<string> {
  const folder = join('packages', name);
  const filter = (path: string) => !['dist', 'node_modules'].includes(basename(path));
  for (const path of ['package.json', 'pnpm-workspace.yaml', 'tsconfig.json', 'proto', folder]) {
    await cp(join(root, path), join(workspace, path), { recursive: true, filter });
  }
  await symlink(join(root, folder, 'node_modules'), join(workspace, folder, 'node_modules'));
  return join(workspace, folder);
}
