import { defineConfig } from 'vitest/config';
import { projectLimits, runOptions } from './vitest.base.ts';

// Runs all packages in one run of Vitest, for the modes `unit`, `slow` and `faults`. `pnpm test` runs each package
// separately, with turbo, and uses this file only for the project `repository`.
export default defineConfig(({ mode }) => ({
  test: {
    ...runOptions,
    projects: [
      '{packages,apps}/*/vitest.config.ts',
      { test: { name: 'repository', include: mode === 'test' ? ['tools/*.test.ts'] : [], ...projectLimits } },
    ],
  },
}));
