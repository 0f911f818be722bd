import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { TallyReporter } from './tools/tally-reporter.ts';
import { testLimitMs, waitLimitMs } from './tools/test-limits.ts';

// Programs that tests start compile their modules once.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/node');

/** The packages whose tests share one PostgreSQL, which the run starts. */
const packagesWithPostgres = ['bench', 'dev-postgres', 'gateway', 'harness', 'postgres'];
const testPostgres = join(import.meta.dirname, 'packages/dev-postgres/testing/global-setup.ts');

/** Most tests wait for other processes most of the time. */
const maxWorkers = availableParallelism() + 2;

/** Limits and workers of every project: the values of the root's config do not apply to projects. */
export const projectLimits = { maxWorkers, testTimeout: testLimitMs, hookTimeout: testLimitMs };

/** Files that take longest, so that none of them is alone at the end. A fresh clone has no measured durations. */
const longest = [
  'operation/start-and-stop',
  'http/http-connections',
  'gateway/test/browser',
  'gateway/test/webhooks',
  'operation/workers',
  'cli/restore-drill',
  'operation/shipped',
  'documentation/examples',
  'orders/create-order.failures',
  'http/tls',
  'operation/log-output',
  'grpc/http2-attacks',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const index = longest.findIndex((part) => moduleId.includes(part));
      return index >= 0 ? index : longest.length + (moduleId.includes('/test/') ? 0 : 1);
    };
    // A process continues with the next file if it is of the same package.
    const packageOf = ({ project }: TestSpecification) => project.name;
    return files.toSorted((one, other) => rank(one) - rank(other) || packageOf(one).localeCompare(packageOf(other)));
  }
}

/** What holds for a run as a whole, of one package or of all. */
export const runOptions = {
  sequence: { sequencer: LongestFirst },
  passWithNoTests: true,
  // As the limit of tests: for a process that does not end, not for a slow machine.
  teardownTimeout: 60_000,
  reporters: ['default', new TallyReporter()],
};

/** The tests of the modes that only `test:faults` and `test:slow` run. */
const longTests: Readonly<Record<string, string[]>> = {
  faults: ['test/**/*.faults.test.ts', 'src/**/simulation.test.ts'],
  slow: ['test/**/*.slow.test.ts'],
};

/**
 * The tests of one package, from its folder. Which test is which is said by its file, and here only:
 *
 * - `src/**\/*.test.ts`: unit tests, in-process, without PostgreSQL, sockets, processes or a browser (`pnpm test:unit`).
 * - `test/**\/*.test.ts`: everything else (`pnpm test`, with the unit tests).
 * - `test/**\/*.faults.test.ts`: the complete fault suite (`pnpm test:faults`), of which `pnpm test` runs a short form.
 * - `test/**\/*.slow.test.ts`: soaks, long fuzzing, the bench. They are bounded and stop by themselves (`pnpm test:slow`).
 */
export const testsOf = (folder: string) =>
  defineConfig(({ mode }) => ({
    // A published package is tested from its source. The others are Vite's defaults, which these replace.
    ssr: { resolve: { conditions: ['@order-gateway/source', 'module', 'node', 'development|production'] } },
    test: {
      ...runOptions,
      ...projectLimits,
      include: longTests[mode] ?? [mode === 'unit' ? 'src/**/*.test.ts' : '{src,test}/**/*.test.ts'],
      exclude: mode in longTests ? [] : ['**/*.{faults,slow}.test.ts'],
      globalSetup: mode !== 'unit' && packagesWithPostgres.includes(basename(folder)) ? [testPostgres] : [],
      // Long tests run one after the other: most of them load the machine.
      ...(mode in longTests && { maxWorkers: 1, testTimeout: 3_600_000 }),
      // The files of a package share processes: to import the gateway's modules costs most files more than their tests.
      isolate: mode in longTests,
      expect: { poll: { timeout: waitLimitMs } },
    },
  }));
