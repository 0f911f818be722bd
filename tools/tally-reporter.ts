import { mkdirSync, writeFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** Writes `N passed, N failed` to `.reports/tally`, the last line of `.ci/run`. */
export class TallyReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const passed = tests.filter((test) => test.result().state === 'passed').length;
    const failed = tests.filter((test) => test.result().state === 'failed').length;
    // A file that fails before its first test, and an error outside of every test, count as one each.
    const broken = modules.filter((module) => module.state() === 'failed' && module.errors().length > 0).length;
    mkdirSync('.reports', { recursive: true });
    writeFileSync('.reports/tally', `${passed} passed, ${failed + broken + unhandledErrors.length} failed\n`);
  }
}
