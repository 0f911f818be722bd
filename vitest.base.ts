/** What the tests of every workspace share. `.ci/tally.mjs` reads the report. */
export const sharedTestOptions = {
  include: ['{src,test}/**/*.test.ts'],
  reporters: ['default', ['json', { outputFile: '.reports/vitest.json' }]] as [
    'default',
    ['json', { outputFile: string }],
  ],
  // Bounds that catch a hang, not a slow machine: two test runs at once on two cores must pass.
  testTimeout: 40_000,
  hookTimeout: 90_000,
  expect: { poll: { timeout: 30_000 } },
};
