import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * Returns the command of each version of Node.js in the PATH that our packages support, by version, the oldest first.
 * Throws if there is none.
 */
export function supportedNodes(): ReadonlyMap<string, string> {
  const commands = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'node'));
  const nodes = commands
    .filter((command) => existsSync(command))
    .map((command) => [execFileSync(command, ['-p', 'process.version'], { encoding: 'utf8' }).trim(), command] as const)
    .filter(([version]) => majorOf(version) >= 20)
    .sort(([one], [other]) => majorOf(one) - majorOf(other));
  if (nodes.length === 0) throw new Error('no version of Node.js in the PATH is supported');
  return new Map(nodes);
}

function majorOf(version: string): number {
  return Number.parseInt(version.slice(1), 10);
}
