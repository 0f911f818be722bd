import { availableParallelism } from 'node:os';
import { basename, join, matchesGlob, relative } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { TallyReporter } from './tools/tally-reporter.ts';
import { testLimitMs, waitLimitMs } from './tools/test-limits.ts';

// Programs that tests start compile their modules once.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/node');

/** The packages whose tests share one PostgreSQL, which the run starts. */
const packagesWithPostgres = ['bench', 'checkout', 'dev-postgres', 'gateway', 'harness', 'postgres'];
const testPostgres = join(import.meta.dirname, 'packages/dev-postgres/testing/global-setup.ts');

/** Limits and workers of every project. Projects do not inherit these values from the root's config. */
export const projectLimits = {
  // Each worker imports and compiles the modules, so that more workers than cores cost a third more CPU time.
  maxWorkers: availableParallelism(),
  testTimeout: testLimitMs,
  hookTimeout: testLimitMs,
};

/**
 * The files that take longest. They start first, so that no worker is left with a long file at the end. Vitest would
 * sort by measured durations, which a fresh clone does not have.
 */
const longest = [
  'start/start-and-stop',
  'http/http-connections',
  'pages/payment-page',
  'gateway/test/background',
  'workers/workers',
  'cli/restore-drill',
  'start/shipped',
  'clients/examples',
  'orders/create-order.failures',
  'http/tls',
  'telemetry/log-output',
  'rpc/http2-attacks',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const index = longest.findIndex((part) => moduleId.includes(part));
      return index >= 0 ? index : longest.length + (moduleId.includes('/test/') ? 0 : 1);
    };
    // A process is reused for the next file only if both files belong to the same package.
    const packageOf = ({ project }: TestSpecification) => project.name;
    return files.toSorted((a, b) => rank(a) - rank(b) || packageOf(a).localeCompare(packageOf(b)));
  }
}

/** Options of a whole run, whether of one package or of all packages. */
export const runOptions = {
  sequence: { sequencer: LongestFirst },
  // Most modes have no files in some packages, but a file that is named on the command line must run.
  passWithNoTests: !process.argv.some((argument) => argument.includes('.test.ts')),
  // Ends a run whose processes hang. Even a slow machine does not reach this limit.
  teardownTimeout: 60_000,
  reporters: ['default', new TallyReporter()],
};

const inProcess = '{src,test}/**/*.test.ts';
const documentation = 'test/documentation/**';

/** If TEST_FILES names files, one per line, tests run only in these. `.ci/run` sets it. */
const onlyFiles = process.env.TEST_FILES?.split('\n');

/** Returns the patterns of a folder's test files, or those of the {@link onlyFiles} that match. */
export function filesIn(folder: string, patterns: readonly string[]): string[] {
  const files = onlyFiles?.map((file) => relative(folder, join(import.meta.dirname, file)));
  return files?.filter((file) => patterns.some((pattern) => matchesGlob(file, pattern))) ?? [...patterns];
}

/** The files that a mode runs. Each of the other modes runs files that the mode `test` excludes. */
const filesOf: Readonly<Record<string, { readonly include: string[]; readonly exclude?: string[] }>> = {
  test: { include: [inProcess], exclude: ['**/*.{system,faults,slow,real}.test.ts', documentation] },
  unit: { include: ['src/**/*.test.ts'] },
  system: { include: ['test/**/*.system.test.ts'], exclude: [documentation] },
  documentation: { include: [`${documentation}/*.test.ts`] },
  faults: { include: ['test/**/*.faults.test.ts', 'src/**/simulation.test.ts'] },
  // The providers' own test modes, with a key in the environment.
  real: { include: ['test/**/*.real.test.ts'] },
  // A complete browser, and all languages of the pages.
  slow: { include: ['test/**/*.slow.test.ts', 'test/pages/{payment-page,reference}/*.system.test.ts'] },
  freeze: { include: [inProcess] },
};

/** The modes whose tests take minutes each. They run one after the other, because most of them load the machine. */
const longModes = ['faults', 'slow'];

/**
 * Returns the configuration of a package's tests. The name of a test file decides when it runs:
 *
 * - `src/**\/*.test.ts`: unit tests, in-process, without PostgreSQL, sockets, processes or browsers (`test:unit`).
 * - `test/**\/*.test.ts`: in-process too, but with PostgreSQL and sockets (`turbo test`, with the unit tests).
 * - `test/**\/*.system.test.ts`: programs, browsers, servers of a test's own, proxies and Citus (`turbo test:system`).
 * - `test/documentation/**`: what the documentation says (`turbo test:documentation`).
 * - `test/**\/*.faults.test.ts`: the complete fault suite (`pnpm test:faults`). `pnpm test` runs a short form of it.
 * - `test/**\/*.real.test.ts`: providers of payments themselves (`test:stripe`, `test:mollie`).
 * - `test/**\/*.slow.test.ts`: soak tests, long fuzz runs and the bench, which end by themselves (`pnpm test:slow`).
 */
export const testsOf = (folder: string) =>
  defineConfig(({ mode }) => ({
    // Tests use the source of a published package. The other conditions repeat Vite's defaults, which this list
    // replaces.
    ssr: { resolve: { conditions: ['@order-gateway/source', 'module', 'node', 'development|production'] } },
    test: {
      ...runOptions,
      ...projectLimits,
      ...filesOf[mode],
      ...(onlyFiles && { include: filesIn(folder, filesOf[mode]?.include ?? []) }),
      ...(mode !== 'unit' && packagesWithPostgres.includes(basename(folder)) && { globalSetup: [testPostgres] }),
      ...(longModes.includes(mode) && { maxWorkers: 1, testTimeout: 3_600_000 }),
      // The files of a package share processes, because importing the gateway's modules takes most files longer than
      // their tests.
      isolate: longModes.includes(mode),
      expect: { poll: { timeout: waitLimitMs } },
    },
  }));
