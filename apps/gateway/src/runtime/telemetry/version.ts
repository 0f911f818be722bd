import { readFileSync } from 'node:fs';
import manifest from '../../../../../package.json' with { type: 'json' };

const root = new URL('../../../../../', import.meta.url);

/** The version of the release, which the gateway and its commands report. */
export const version: string = manifest.version;

/**
 * `git archive` replaces this text with the commit's hash (`.gitattributes`), so that a release without `.git` knows
 * its commit.
 */
const archived = '$Format:%H$';

/** The hash of the commit of this code; `unknown` if no file contains it. */
export const commit = /^[0-9a-f]{40}$/.test(archived) ? archived : (commitOfCheckout() ?? 'unknown');

/**
 * Reads git's files, because git itself rejects a repository that belongs to another user, which is common for a
 * service with its own user.
 */
function commitOfCheckout(): string | undefined {
  try {
    const head = readGitFile('HEAD');
    const reference = /^ref: (.+)/.exec(head)?.[1];
    return reference === undefined ? head : hashOf(reference);
  } catch {
    return undefined;
  }
}

function hashOf(reference: string): string | undefined {
  try {
    return readGitFile(reference);
  } catch {
    const lines = readGitFile('packed-refs').split('\n');
    return lines.find((line) => line.endsWith(` ${reference}`))?.split(' ', 1)[0];
  }
}

function readGitFile(name: string): string {
  return readFileSync(new URL(`.git/${name}`, root), 'utf8').trim();
}
