import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { TallyReporter } from './tools/tally-reporter.ts';
import { maxWorkers, testTimeout } from './vitest.base.ts';

// Programs that tests start compile their modules once.
process.env.NODE_COMPILE_CACHE ??= new URL('node_modules/.cache/node', import.meta.url).pathname;

/** Files that take longest, so that none of them is alone at the end. A fresh clone has no measured durations. */
const longest = [
  'gateway/test/start-and-stop',
  'gateway/test/http-connections',
  'harness/test/',
  'dev-postgres/test/',
  'bench/test/',
  'gateway/test/browser',
  'gateway/test/w',
  'gateway/test/restore-drill',
  'gateway/test/shipped',
  'gateway/test/examples',
  'gateway/test/create-order.failures',
  'gateway/test/tls',
  'gateway/test/log-output',
  'gateway/test/http2-attacks',
];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const index = longest.findIndex((part) => moduleId.includes(part));
      return index >= 0 ? index : longest.length + (moduleId.includes('/test/') ? 0 : 1);
    };
    // A process goes on with the next file where that is of the same package.
    const packageOf = ({ project }: TestSpecification) => project.name;
    return files.toSorted((one, other) => rank(one) - rank(other) || packageOf(one).localeCompare(packageOf(other)));
  }
}

export default defineConfig(({ mode }) => ({
  test: {
    projects: [
      '{packages,apps}/*/vitest.config.ts',
      { test: { name: 'repository', include: mode === 'test' ? ['tools/*.test.ts'] : [], maxWorkers, testTimeout } },
    ],
    sequence: { sequencer: LongestFirst },
    passWithNoTests: true,
    // As the limits in vitest.base.ts: for a process that does not end, not for a slow machine.
    teardownTimeout: 60_000,
    reporters: ['default', new TallyReporter()],
  },
}));
