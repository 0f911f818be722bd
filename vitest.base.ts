import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Starts the PostgreSQL that all test files of a run share. */
const testPostgres = new URL('./packages/dev-postgres/testing/global-setup.ts', import.meta.url).pathname;

/** Most tests wait for other processes most of the time. Every project sets this: the root's value does not apply to projects. */
export const maxWorkers = availableParallelism() + 2;

/** A limit that catches a hang, not a slow machine: two test runs at once on two cores must pass. Every project sets it, too. */
export const testTimeout = 120_000;

/** The tests of the modes that only `test:faults` and `test:slow` run. */
const longTests: Readonly<Record<string, string[]>> = {
  faults: ['test/**/*.faults.test.ts', 'src/**/simulation.test.ts'],
  slow: ['test/**/*.slow.test.ts'],
};

/**
 * The tests of one package. Which test is which is said by its file, and here only:
 *
 * - `src/**\/*.test.ts`: unit tests, in-process, without PostgreSQL, sockets, processes or a browser (`pnpm test:unit`).
 * - `test/**\/*.test.ts`: everything else (`pnpm test`, with the unit tests).
 * - `test/**\/*.faults.test.ts`: the complete fault suite (`pnpm test:faults`), of which `pnpm test` runs a short form.
 * - `test/**\/*.slow.test.ts`: soaks, long fuzzing, the bench. They are bounded and stop by themselves (`pnpm test:slow`).
 */
export const packageTests = defineConfig(({ mode }) => ({
  // A published package is tested from its source. The others are Vite's defaults, which these replace.
  ssr: { resolve: { conditions: ['@gateway/source', 'module', 'node', 'development|production'] } },
  test: {
    include: longTests[mode] ?? [mode === 'unit' ? 'src/**/*.test.ts' : '{src,test}/**/*.test.ts'],
    exclude: mode in longTests ? [] : ['**/*.{faults,slow}.test.ts'],
    globalSetup: mode === 'unit' ? [] : [testPostgres],
    // Long tests run one after the other: most of them load the machine.
    maxWorkers: mode in longTests ? 1 : maxWorkers,
    // The files of a package share processes: to import the gateway's modules costs most files more than their tests.
    isolate: mode in longTests,
    testTimeout: mode in longTests ? 3_600_000 : testTimeout,
    hookTimeout: testTimeout,
    expect: { poll: { timeout: 60_000 } },
  },
}));
