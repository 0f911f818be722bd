import { writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

const root = join(import.meta.dirname, '..');

/** The content of the file that each run of Vitest writes for `tools/turbo.ts`. */
export interface Tally {
  readonly passed: number;
  readonly skipped: number;
  /** The files with skipped tests. */
  readonly skippedFiles: readonly string[];
  /** The failed tests, each with the first line of its error and the beginning of the diff. */
  readonly failures: readonly string[];
}

/** Writes the {@link Tally} of a run. */
export class TallyReporter implements Reporter {
  onTestRunStart(): void {
    // A run that does not finish counts as a failure.
    this.#write({ passed: 0, skipped: 0, skippedFiles: [], failures: ['The run did not finish'] });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const testsThat = (wanted: 'passed' | 'skipped') => tests.filter((test) => test.result().state === wanted);
    const skipped = testsThat('skipped');
    const failedTests = tests.flatMap((test) => {
      const { state, errors } = test.result();
      return state === 'failed' ? [failure(`${pathOf(test.module)} > ${test.fullName}`, errors?.[0])] : [];
    });
    // A file or group that fails before its first test counts as one failure, and so does each error outside all tests.
    const suites = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const failedSuites = suites
      .filter((suite) => suite.errors().length > 0)
      .map((suite) =>
        failure(
          suite.type === 'module' ? pathOf(suite) : `${pathOf(suite.module)} > ${suite.fullName}`,
          suite.errors()[0],
        ),
      );
    const otherErrors = unhandledErrors.map((error) => {
      const { VITEST_TEST_PATH: file } = error;
      return failure(
        `Outside of all tests${typeof file === 'string' ? `, during ${relative(root, file)}` : ''}`,
        error,
      );
    });
    this.#write({
      passed: testsThat('passed').length,
      skipped: skipped.length,
      skippedFiles: [...new Set(skipped.map((test) => pathOf(test.module)))],
      failures: [...failedTests, ...failedSuites, ...otherErrors],
    });
  }

  #write(tally: Tally): void {
    const { TEST_REPORTS } = process.env;
    // Only `tools/turbo.ts` reads the tallies.
    if (TEST_REPORTS === undefined) return;
    writeFileSync(join(TEST_REPORTS, `${basename(process.cwd())}-${process.pid}.json`), JSON.stringify(tally));
  }
}

function pathOf(module: TestModule): string {
  return relative(root, module.moduleId);
}

const comparedLinesMax = 20;

function failure(where: string, error: SerializedError | undefined): string {
  const [message] = String(error?.message).split('\n', 1);
  // If a process of the test runner ends before its tests, the cause says which process ended, and how.
  const cause = error?.cause ? `: ${String((error.cause as SerializedError).message)}` : '';
  const compared = stripVTControlCharacters(String(error?.diff ?? '')).split('\n', comparedLinesMax);
  return [
    `${where}: ${message}${cause}`,
    ...compared.filter((line) => line.trim() !== '').map((line) => `  ${line}`),
  ].join('\n');
}
