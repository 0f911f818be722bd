import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

const root = join(import.meta.dirname, '..');

/** What a package's run writes to `.reports/PACKAGE.json`, for `tools/turbo.ts`. */
export interface Tally {
  readonly passed: number;
  /** What failed, each with the first line of its error, and the beginning of a comparison. */
  readonly failures: readonly string[];
}

/** Writes the {@link Tally} of a run. */
export class TallyReporter implements Reporter {
  onTestRunStart(): void {
    // A run that does not finish counts as a failure.
    this.#write({ passed: 0, failures: ['The run did not finish'] });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const passed = tests.filter((test) => test.result().state === 'passed').length;
    const failedTests = tests.flatMap((test) => {
      const { state, errors } = test.result();
      return state === 'failed' ? [failure(`${pathOf(test.module)} > ${test.fullName}`, errors?.[0])] : [];
    });
    // A file or group that fails before its first test, and an error outside of every test, count as one each.
    const suites = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const failedSuites = suites
      .filter((suite) => suite.errors().length > 0)
      .map((suite) =>
        failure(
          suite.type === 'module' ? pathOf(suite) : `${pathOf(suite.module)} > ${suite.fullName}`,
          suite.errors()[0],
        ),
      );
    const otherErrors = unhandledErrors.map((error) => failure('Outside of every test', error));
    this.#write({ passed, failures: [...failedTests, ...failedSuites, ...otherErrors] });
  }

  #write(tally: Tally): void {
    const reports = join(root, '.reports');
    mkdirSync(reports, { recursive: true });
    writeFileSync(join(reports, `${basename(process.cwd())}.json`), JSON.stringify(tally));
  }
}

function pathOf(module: TestModule): string {
  return relative(root, module.moduleId);
}

const comparedLinesMax = 20;

function failure(where: string, error: SerializedError | undefined): string {
  const [message] = String(error?.message).split('\n', 1);
  const compared = stripVTControlCharacters(String(error?.diff ?? '')).split('\n', comparedLinesMax);
  return [`${where}: ${message}`, ...compared.filter((line) => line.trim() !== '').map((line) => `  ${line}`)].join(
    '\n',
  );
}
