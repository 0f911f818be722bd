import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { mustSkip } from './skip-if-missing.ts';

/** The form of Conventional Commits 1.0.0, with a subject of at most 72 characters. */
const conventional =
  /^(?=.{1,72}$)(?:build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test)(?:\([\w-]+\))?!?: \S.*$/;

/**
 * Returns the subjects of all commits, except merges, since the one that added this file, or since the oldest commit of
 * a shallow clone. Returns `undefined` if there is no git history.
 */
function readSubjects(): string[] | undefined {
  try {
    const added = git('log', '--diff-filter=A', '--format=%ct', '--', 'tools/commits.test.ts').split('\n').at(-1);
    return git('log', '--no-merges', `--since=${added || 'now'}`, '--format=%s')
      .split('\n')
      .filter(Boolean);
  } catch {
    return undefined;
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, { encoding: 'utf8', stdio: 'pipe' }).trim();
}

const subjects = readSubjects();
const noHistory = subjects === undefined ? 'this folder has no git history' : undefined;

test.skipIf(mustSkip('the subjects of commits', noHistory))('commits have conventional subjects', () => {
  expect(subjects?.filter((subject) => !conventional.test(subject))).toEqual([]);
});

test('the pattern accepts conventional subjects and rejects others', () => {
  const good = ['fix(postgres): replace a client', 'docs: explain', 'feat!: drop an option', `fix: ${'x'.repeat(67)}`];
  const bad = ['Fix it', 'fix it', 'fix(postgres) it', 'wip', 'fix: ', `fix: ${'x'.repeat(68)}`, 'toil: x'];
  expect([...good, ...bad].filter((subject) => conventional.test(subject))).toEqual(good);
});
