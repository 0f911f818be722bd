import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import biome from '../biome.json' with { type: 'json' };

/** A line of a comment that could be wrapped: no address, and no command to copy. */
const comment = /^\s*(?:\*|\/\/|\/\*)(?!.*(?:https?:|Usage:))/;

// Biome wraps code only.
test('no comment is wider than code may be', () => {
  const files = globSync('{apps,docs,packages,tools}/**/*.{ts,mts,js,mjs}', {
    exclude: ['**/node_modules', '**/dist', '**/gen', '**/frozen'],
  });
  const wide = files.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, index) =>
        comment.test(line) && line.length > biome.formatter.lineWidth ? [`${file}:${index + 1}`] : [],
      ),
  );
  expect(files.length).toBeGreaterThan(500);
  expect(wide).toEqual([]);
});
