import { defineConfig } from 'vitest/config';
import { filesIn, projectLimits, runOptions } from './vitest.base.ts';

const commits = 'tools/commits.test.ts';

// Runs all packages in one run of Vitest, for the modes `unit`, `slow` and `faults`. `pnpm test` runs each package
// separately, with turbo, and uses this file only for the projects `repository` and `commits`. Turbo caches the first
// one; the history is not in the files that it compares.
export default defineConfig(({ mode }) => ({
  test: {
    ...runOptions,
    projects: [
      '{packages,apps}/*/vitest.config.ts',
      {
        test: {
          name: 'repository',
          include: mode === 'test' ? filesIn(import.meta.dirname, ['tools/*.test.ts']) : [],
          exclude: [commits],
          ...projectLimits,
        },
      },
      { test: { name: 'commits', include: mode === 'test' ? [commits] : [], ...projectLimits } },
    ],
  },
}));
