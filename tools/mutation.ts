import { parseArgs } from 'node:util';
import { Stryker } from '@stryker-mutator/core';
import { setup } from '../packages/dev-postgres/testing/global-setup.ts';

/**
 * For each folder, the files of its tests, without `.test.ts`, and the percentage of changes that these tests must
 * detect. The tests must run the changed code in their own process.
 */
const targets: Readonly<Record<string, { readonly percent: number; readonly tests: readonly string[] }>> = {
  'packages/domain/src': {
    percent: 95,
    // The tests of fixtures cover the rules of fields.
    tests: ['packages/{domain,fixtures}/src/**/*', 'apps/gateway/test/operations/orders/fixtures-in-memory'],
  },
  'packages/order-model/src': { percent: 85, tests: ['packages/order-model/src/**/*'] },
  'apps/gateway/src/operations': {
    percent: 85,
    tests: [
      'apps/gateway/src/operations/**/*',
      'apps/gateway/test/operations/orders/{fixtures-in-memory,fixtures-and-openapi,create-order.unavailable}',
      'apps/gateway/test/operations/events/list-events',
      'apps/gateway/test/operations/management/{webhook-endpoints,client-secrets,brand}',
    ],
  },
  'apps/gateway/src/calls': { percent: 85, tests: ['apps/gateway/src/calls/**/*'] },
  'apps/harness/src/audit': { percent: 85, tests: ['apps/harness/src/audit/**/*', 'apps/harness/test/audit-journal'] },
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
process.env.MUTATION_TESTS = tests.map((name) => `${name}.test.ts`).join(' ');

// Some tests need PostgreSQL. All workers share this server, which runs until the last worker has ended.
const stopPostgres = await setup();
try {
  await new Stryker({
    mutate: files.length > 0 ? files : [`${folder}/**/*.ts`, '!**/*.test.ts'],
    testRunner: 'vitest',
    plugins: ['@stryker-mutator/vitest-runner'],
    vitest: { configFile: 'vitest.mutation.ts', related: false },
    // To test a change of code that runs while a module loads, Stryker would have to run all tests.
    ignoreStatic: true,
    // Stryker would read this file with an API that TypeScript 7 does not have. Vitest does not need it.
    tsconfigFile: 'none',
    tempDirName: '.build/mutation',
    reporters: ['clear-text', 'progress-append-only'],
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
    concurrency: 2,
    // A test that starts slowly on a busy machine must not be mistaken for one that a change made endless.
    timeoutMS: 30_000,
    thresholds: { high: percent, low: percent, break: percent },
  }).runMutationTest();
} finally {
  await stopPostgres?.();
}
