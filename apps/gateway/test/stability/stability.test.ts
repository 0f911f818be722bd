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

// docs/stability.md explains what a failure means.
test.each([
  ['openapi', openApiFacts],
  ['events', eventFacts],
  ['errors', errorFacts],
  ['callers', callerFacts],
  ['migrations', migrationFacts],
  ['variables', variableFacts],
])('every fact of the last release about %s is still true', async (name, facts) => {
  expect(await brokenFacts(name, facts())).toEqual([]);
});
