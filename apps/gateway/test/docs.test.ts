import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { errorsPage } from '../docs/errors-page.ts';

test('docs/errors.md is what the list of failures makes it', async () => {
  const page = await readFile(new URL('../../../docs/errors.md', import.meta.url), 'utf8');
  expect(page).toBe(errorsPage());
});
