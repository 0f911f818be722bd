import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';

/** Folders, and the percentage of changes that their unit tests must find. */
const targets: Readonly<Record<string, number>> = {
  'packages/domain/src': 95,
  'packages/order-model/src': 85,
  'apps/gateway/src/operations': 85,
  'apps/gateway/src/intake': 85,
  'apps/harness/src/audit': 85,
};

const usage = `Usage: pnpm test:mutation FOLDER [FILE...]

Changes the code of a folder in one place at a time, and counts the changes that make a unit test of the folder fail.
FOLDER is ${Object.keys(targets).join(', ')}.
FILE is a file of the folder, which may have a range of lines: packages/domain/src/result.ts:1-20. Default: all files.
`;

const { positionals } = parseArgs({ allowPositionals: true });
const [folder = '', ...files] = positionals;
const target = targets[folder];
if (target === undefined) {
  process.stderr.write(usage);
  process.exit(2);
}

await new Stryker({
  mutate: files.length > 0 ? files : [`${folder}/**/*.ts`, '!**/*.test.ts'],
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'vitest.mutation.ts', dir: folder, related: false },
  // A change of a constant that a module computes while it loads needs a run of all tests of the folder.
  ignoreStatic: true,
  // Stryker would read this file with an API that TypeScript 7 does not have. Vitest does not need it.
  tsconfigFile: 'none',
  tempDirName: '.build/mutation',
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  concurrency: 2,
  // A test that starts slowly on a busy machine must not count as a change that makes it run for ever.
  timeoutMS: 10_000,
  thresholds: { high: target, low: target, break: target },
}).runMutationTest();
