import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** Writes how many tests passed and failed to `.reports/PACKAGE.json`, for `tools/turbo.ts`. */
export class TallyReporter implements Reporter {
  onTestRunStart(): void {
    // A run that does not finish counts as a failure.
    this.#write({ passed: 0, failed: 1 });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const passed = tests.filter((test) => test.result().state === 'passed').length;
    const failed = tests.filter((test) => test.result().state === 'failed').length;
    // A file that fails before its first test, and an error outside of every test, count as one each.
    const broken = modules.filter((module) => module.state() === 'failed' && module.errors().length > 0).length;
    this.#write({ passed, failed: failed + broken + unhandledErrors.length });
  }

  #write(tally: { readonly passed: number; readonly failed: number }): void {
    const reports = join(import.meta.dirname, '../.reports');
    mkdirSync(reports, { recursive: true });
    writeFileSync(join(reports, `${basename(process.cwd())}.json`), JSON.stringify(tally));
  }
}
