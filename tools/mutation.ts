import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';

/** Folders, the percentage of changes that their tests must find, and where these tests are. */
const targets: Readonly<Record<string, { readonly percent: number; readonly tests: string }>> = {
  // The fixtures state the rules of fields.
  'packages/domain/src': {
    percent: 95,
    tests: '{packages/{domain,fixtures}/src/**/*,apps/gateway/test/orders/fixtures-in-memory}',
  },
  'packages/order-model/src': { percent: 85, tests: 'packages/order-model/src/**/*' },
  // These tests of calls use a store in memory.
  'apps/gateway/src/operations': {
    percent: 85,
    tests: 'apps/gateway/{src/operations/**/*,test/orders/{fixtures-in-memory,create-order.unavailable}}',
  },
  'apps/gateway/src/intake': { percent: 85, tests: 'apps/gateway/src/intake/**/*' },
  'apps/harness/src/audit': { percent: 85, tests: 'apps/harness/src/audit/**/*' },
};

const usage = `Usage: pnpm test:mutation FOLDER [FILE...]

Changes the code of a folder in one place at a time, and counts the changes that make a test fail.
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

const { percent, tests } = target;
process.env.MUTATION_TESTS = `${tests}.test.ts`;

await new Stryker({
  mutate: files.length > 0 ? files : [`${folder}/**/*.ts`, '!**/*.test.ts'],
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'vitest.mutation.ts', related: false },
  // A change of a constant that a module computes while it loads needs a run of all tests.
  ignoreStatic: true,
  // Stryker would read this file with an API that TypeScript 7 does not have. Vitest does not need it.
  tsconfigFile: 'none',
  tempDirName: '.build/mutation',
  reporters: ['clear-text', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  concurrency: 2,
  // A test that starts slowly on a busy machine must not count as a change that makes it run for ever.
  timeoutMS: 10_000,
  thresholds: { high: percent, low: percent, break: percent },
}).runMutationTest();
