import { globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

interface Package {
  readonly name: string;
  readonly exports: Readonly<Record<string, unknown>>;
}

const packages = globSync('packages/*/package.json').map((path) => ({
  folder: dirname(path),
  ...(JSON.parse(readFileSync(path, 'utf8')) as Package),
}));

/** Exports that are patterns, which expose every file of a folder. */
const patterns = packages.flatMap(({ name, exports }) =>
  Object.keys(exports)
    .filter((path) => path.includes('*'))
    .map((path) => `${name}${path.slice(1)}`),
);

test('packages export named entry points, and only generated code is exported by a pattern', () => {
  expect(patterns).toEqual(['@order-gateway/contract/*']);
});

test('a file that is not an entry point does not resolve', () => {
  const { resolve } = createRequire(join(process.cwd(), 'apps/gateway/package.json'));
  expect(resolve('@order-gateway/domain/orders')).toMatch(/packages\/domain\/src\/orders\/index\.ts$/);
  for (const path of ['domain/orders/order', 'domain/base62', 'postgres/schema', 'postgres/orders/find/order-lists']) {
    expect(() => resolve(`@order-gateway/${path}`), path).toThrow(/not defined by "exports"/);
  }
});

test('the workflows name each action by its commit, because a tag can be moved to other code', () => {
  const used = globSync('.github/workflows/*.yml').flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(/uses: (.*)/g)].map(([, action]) => action),
  );
  expect(used.length).toBeGreaterThan(0);
  for (const action of used) expect(action).toMatch(/^[\w/-]+@[0-9a-f]{40} # v[\d.]+$/);
});
