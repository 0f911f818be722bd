import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

/** An import of a file, or of a package, which is represented by its folder. Paths are relative to the repository. */
type Import = { readonly from: string; readonly to: string };

const packageFolders = new Map(
  globSync('{packages,apps}/*/package.json').map((path) => [
    JSON.parse(readFileSync(path, 'utf8')).name,
    dirname(path),
  ]),
);

/** Returns all imports between the project's own files and packages, including those of types. */
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
 * Returns the cycles of imports, each as a text. Files and folders in the same folder must not import each other in a
 * cycle, directly or indirectly. An import between two files counts as an import between the two siblings below their
 * common folder.
 */
function findCycles(imports: readonly Import[]): string[] {
  const edges = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    const [fromParts, toParts] = [from.split('/'), to.split('/')];
    const depth = fromParts.findIndex((part, index) => part !== toParts[index]) + 1;
    const siblings = [fromParts, toParts].map((parts) => parts.slice(0, depth).join('/')) as [string, string];
    edges.set(siblings[0], (edges.get(siblings[0]) ?? new Set()).add(siblings[1]));
  }
  const cycles = new Set<string>();
  const done = new Set<string>();
  const visit = (node: string, path: readonly string[]) => {
    if (path.includes(node)) cycles.add([...path.slice(path.indexOf(node)), node].join(' -> '));
    if (path.includes(node) || done.has(node)) return;
    for (const next of edges.get(node) ?? []) visit(next, [...path, node]);
    done.add(node);
  };
  for (const node of edges.keys()) visit(node, []);
  return [...cycles];
}

/** Returns the imports that violate the layout, in which nothing imports an app, and domain imports no package. */
function findLayoutViolations(imports: readonly Import[]): string[] {
  return imports
    .filter(({ from, to }) => {
      const [importer, imported] = [from, to].map((path) => path.split('/').slice(0, 2).join('/'));
      return (
        importer !== imported &&
        (imported?.startsWith('apps/') || (importer === 'packages/domain' && imported?.startsWith('packages/')))
      );
    })
    .map(({ from, to }) => `${from} -> ${to}`);
}

const isTest = (path: string) => /\.test\.ts$|\/test\//.test(path);

test('no files or folders import each other in a cycle', () => {
  // Nothing imports a test, so no test is part of a cycle of files. Test folders are not part of the program.
  expect(findCycles(readImports().filter(({ from }) => !isTest(from)))).toEqual([]);
});

test('packages do not import apps, apps do not import each other, and domain imports no package', () => {
  expect(findLayoutViolations(readImports())).toEqual([]);
});

/** The folders and files directly in the source of the gateway. */
const gatewayRoot = 'apps/gateway/src/';
const moduleOf = (path: string) => path.slice(gatewayRoot.length).split('/', 1)[0] ?? '';

/** Returns which modules of the gateway import each module. */
function importersOfModules(): Map<string, ReadonlySet<string>> {
  const importers = new Map<string, Set<string>>();
  for (const { from, to } of readImports()) {
    if (isTest(from) || !from.startsWith(gatewayRoot) || !to.startsWith(gatewayRoot) || moduleOf(from) === moduleOf(to))
      continue;
    importers.set(moduleOf(to), (importers.get(moduleOf(to)) ?? new Set()).add(moduleOf(from)));
  }
  return importers;
}

test('the source of the gateway has at most 16 modules in 11 layers, with at most 70 imports between modules', () => {
  const importers = importersOfModules();
  const modules = new Set([...importers].flatMap(([module, from]) => [module, ...from]));
  // Without a cycle, every module is in a layer below all modules that import it.
  const layerOf = (module: string): number => 1 + Math.max(0, ...[...(importers.get(module) ?? [])].map(layerOf));
  expect(modules.size, [...modules].join()).toBeLessThanOrEqual(16);
  expect(Math.max(...[...modules].map(layerOf))).toBeLessThanOrEqual(11);
  expect([...importers.values()].reduce((sum, from) => sum + from.size, 0)).toBeLessThanOrEqual(70);
});

test('the README of a folder of the gateway lists exactly the files and folders that import it', () => {
  const importers = importersOfModules();
  const readmes = globSync(`${gatewayRoot}*/README.md`);
  expect(readmes).not.toEqual([]);
  for (const readme of readmes) {
    const [, list = ''] = /^Imported by: ([\s\S]+)\.$/m.exec(readFileSync(readme, 'utf8')) ?? [];
    const listed = [...list.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
    expect([readme, listed]).toEqual([readme, [...(importers.get(moduleOf(readme)) ?? [])].toSorted()]);
  }
});

test('findCycles finds cycles of files, folders and packages, and accepts imports without a cycle', () => {
  const cycles = (...lines: string[]) =>
    findCycles(lines.map((line) => line.split(' ')).map(([from = '', to = '']) => ({ from, to })));
  expect(cycles('a/x.ts a/y.ts', 'a/y.ts a/z.ts', 'a/z.ts a/x.ts')).toEqual(['a/x.ts -> a/y.ts -> a/z.ts -> a/x.ts']);
  expect(cycles('a/b/x.ts a/c/y.ts', 'a/c/z.ts a/b/w.ts')).toEqual(['a/b -> a/c -> a/b']);
  expect(cycles('a/main.ts a/b/x.ts', 'a/b/x.ts a/limits.ts', 'a/b/x.ts a/b/y.ts')).toEqual([]);
  expect(cycles('packages/a/x.ts packages/b', 'packages/b/y.ts packages/a')).toHaveLength(1);
});

test('importsIn finds every form of import', () => {
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
    'packages/x/src/a.ts',
    'packages/x/b.ts',
    'packages/domain',
    'packages/x/src/c.ts',
  ]);
});
