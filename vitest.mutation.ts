import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { testsOf } from './vitest.base.ts';

// Runs the tests that `tools/mutation.ts` names. Stryker starts Vitest itself and cannot choose a mode. This file uses
// the mode `unit`, which does not start PostgreSQL, because the command has already started it.
export default defineConfig(async (env) => {
  const tests = await testsOf(import.meta.dirname)({ ...env, mode: 'unit' });
  // The links in node_modules point to the original packages instead of the changed ones.
  const domain = join(import.meta.dirname, 'packages/domain');
  const alias = [
    { find: /^@order-gateway\/domain\/(?=testing\/)/, replacement: `${domain}/` },
    { find: /^@order-gateway\/domain\//, replacement: `${domain}/src/` },
  ];
  return {
    ...tests,
    resolve: { alias },
    test: { ...tests.test, include: process.env.MUTATION_TESTS?.split(' ') ?? [], reporters: [] },
  };
});
