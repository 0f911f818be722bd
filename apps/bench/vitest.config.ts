import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['{src,testing}/**/*.test.ts'],
    reporters: ['default', ['json', { outputFile: '.reports/vitest.json' }]],
  },
});
