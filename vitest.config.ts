import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { TallyReporter } from './tools/tally-reporter.ts';
import { testPostgres } from './vitest.base.ts';

export default defineConfig(({ mode }) => ({
  test: {
    projects: [
      '{packages,apps}/*/vitest.config.ts',
      { test: { name: 'repository', include: mode === 'test' ? ['tools/*.test.ts'] : [] } },
    ],
    globalSetup: mode === 'unit' ? [] : [testPostgres],
    passWithNoTests: true,
    // Most tests wait for other processes most of the time.
    maxWorkers: availableParallelism() + 2,
    reporters: ['default', new TallyReporter()],
  },
}));
