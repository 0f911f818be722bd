import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

/** An import of a file, or of a package as its folder. Paths are relative to the repository. */
type Import = { readonly from: string; readonly to: string };

const packageFolders = new Map(
  globSync('{packages,apps}/*/package.json').map((path) => [
    JSON.parse(readFileSync(path, 'utf8')).name,
    dirname(path),
  ]),
);

/** All imports between the project's own files and packages, those of types too. */
function readImports(): Import[] {
  const files = globSync('{packages,apps,tools}/**/*.ts', { exclude: ['**/node_modules'] });
  return files.flatMap((from) => importsIn(from, readFileSync(from, 'utf8')));
}

function importsIn(from: string, text: string): Import[] {
  return [...text.matchAll(/^(?:import|export|\} from) .*?'([^']+)';$|\bimport\('([^']+)'\)/gm)].flatMap((match) => {
    const specifier = match[1] ?? match[2] ?? '';
    if (specifier.startsWith('.')) return { from, to: join(dirname(from), specifier) };
    const to = packageFolders.get(/^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0]);
    return to === undefined || from.startsWith(`${to}/`) ? [] : { from, to };
  });
}

/**
 * Circles of imports, one a line. Files and folders of one folder must not import each other in a circle, directly or through
 * others: an import between two files counts for the two siblings below their common folder.
 */
function findCircles(imports: readonly Import[]): string[] {
  const edges = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    const [one, other] = [from.split('/'), to.split('/')];
    const depth = one.findIndex((part, index) => part !== other[index]) + 1;
    const siblings = [one, other].map((parts) => parts.slice(0, depth).join('/')) as [string, string];
    edges.set(siblings[0], (edges.get(siblings[0]) ?? new Set()).add(siblings[1]));
  }
  const circles = new Set<string>();
  const done = new Set<string>();
  const visit = (node: string, path: readonly string[]) => {
    if (path.includes(node)) circles.add([...path.slice(path.indexOf(node)), node].join(' -> '));
    if (path.includes(node) || done.has(node)) return;
    for (const next of edges.get(node) ?? []) visit(next, [...path, node]);
    done.add(node);
  };
  for (const node of edges.keys()) visit(node, []);
  return [...circles];
}

/** Imports against the layout: apps -> packages -> domain. */
function findWrongArrows(imports: readonly Import[]): string[] {
  return imports
    .filter(({ from, to }) => {
      const [own, other] = [from, to].map((path) => path.split('/').slice(0, 2).join('/'));
      return (
        own !== other && (other?.startsWith('apps/') || (own === 'packages/domain' && other?.startsWith('packages/')))
      );
    })
    .map(({ from, to }) => `${from} -> ${to}`);
}

const isTest = (path: string) => /\.test\.ts$|\/test\//.test(path);

test('no files and no folders import each other in a circle', () => {
  // Nothing imports a test, so no test is part of a circle of files; their folder is not part of the program.
  expect(findCircles(readImports().filter(({ from }) => !isTest(from)))).toEqual([]);
});

test('apps import packages, packages import no app, and domain imports nothing', () => {
  expect(findWrongArrows(readImports())).toEqual([]);
});

test('a folder of the gateway is imported only by those that its README lists', () => {
  const root = 'apps/gateway/src/';
  const partOf = (path: string) => path.slice(root.length).split('/', 1)[0] ?? '';
  const importers = new Map<string, Set<string>>();
  for (const { from, to } of readImports()) {
    if (isTest(from) || !from.startsWith(root) || !to.startsWith(root) || partOf(from) === partOf(to)) continue;
    importers.set(partOf(to), (importers.get(partOf(to)) ?? new Set()).add(partOf(from)));
  }
  const readmes = globSync(`${root}*/README.md`);
  expect(readmes).not.toEqual([]);
  for (const readme of readmes) {
    const [, list = ''] = /^Imported by: ([\s\S]+)\.$/m.exec(readFileSync(readme, 'utf8')) ?? [];
    const listed = [...list.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
    expect([readme, listed]).toEqual([readme, [...(importers.get(partOf(readme)) ?? [])].toSorted()]);
  }
});

test('circles of files, of folders and of packages are found, and no others', () => {
  const circles = (...lines: string[]) =>
    findCircles(lines.map((line) => line.split(' ')).map(([from = '', to = '']) => ({ from, to })));
  expect(circles('a/x.ts a/y.ts', 'a/y.ts a/z.ts', 'a/z.ts a/x.ts')).toEqual(['a/x.ts -> a/y.ts -> a/z.ts -> a/x.ts']);
  expect(circles('a/b/x.ts a/c/y.ts', 'a/c/z.ts a/b/w.ts')).toEqual(['a/b -> a/c -> a/b']);
  expect(circles('a/main.ts a/b/x.ts', 'a/b/x.ts a/limits.ts', 'a/b/x.ts a/b/y.ts')).toEqual([]);
  expect(circles('packages/a/x.ts packages/b', 'packages/b/y.ts packages/a')).toHaveLength(1);
});

test('imports are read in all their forms', () => {
  const text = [
    "import { a } from './a.ts';",
    'import {',
    '  type B,',
    "} from '../b.ts';",
    "export * from '@order-gateway/domain/money/money';",
    "const c = await import('./c.ts');",
    "import 'node:fs';",
  ].join('\n');
  const from = 'packages/x/src/y.ts';
  expect(importsIn(from, text).map(({ to }) => to)).toEqual([
    ...['packages/x/src/a.ts', 'packages/x/b.ts', 'packages/domain', 'packages/x/src/c.ts'],
  ]);
});
