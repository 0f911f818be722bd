import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { testsOf } from './vitest.base.ts';

// The tests that `tools/mutation.ts` names. Stryker starts Vitest itself and can't choose a mode.
// The mode `unit` starts no PostgreSQL: the command has started one.
export default defineConfig(async (env) => {
  const tests = await testsOf(import.meta.dirname)({ ...env, mode: 'unit' });
  // The links in node_modules lead to the original packages, not to the changed ones.
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
