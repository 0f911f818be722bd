import { defineConfig } from 'vitest/config';
import { testsOf } from './vitest.base.ts';

// The unit tests of the folder that `tools/mutation.ts` names. Stryker starts Vitest itself and can't choose a mode.
export default defineConfig(async (env) => {
  const tests = await testsOf(import.meta.dirname)({ ...env, mode: 'unit' });
  return { ...tests, test: { ...tests.test, include: ['**/*.test.ts'], reporters: [] } };
});
