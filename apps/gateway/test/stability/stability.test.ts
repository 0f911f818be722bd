import { expect, test } from 'vitest';
import {
  brokenFacts,
  callerFacts,
  errorFacts,
  eventFacts,
  migrationFacts,
  openApiFacts,
  variableFacts,
} from './facts.ts';

// docs/stability.md says what a failure means.
test.each([
  ['openapi', openApiFacts],
  ['events', eventFacts],
  ['errors', errorFacts],
  ['callers', callerFacts],
  ['migrations', migrationFacts],
  ['variables', variableFacts],
])('everything that the last release promised about %s is still true', async (name, facts) => {
  expect(await brokenFacts(name, facts())).toEqual([]);
});
