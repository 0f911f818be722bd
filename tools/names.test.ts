import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };

/** Every text file of the repository: documentation, help texts, messages, manifests and scripts. */
const files = globSync('**/*.{conf,css,html,js,json,md,mjs,mts,php,proto,py,service,sh,sql,ts,yaml,yml}', {
  exclude: ['**/node_modules', '**/dist', 'tools/names.test.ts'],
}).concat(globSync(['.ci/*', '.github/**/*.yml', 'Containerfile', '.env.example']));

/** The third-party packages that the project pins. No other publisher can use their names. */
const [, catalog = ''] = /^catalog:\n((?: {2}.+\n)+)/m.exec(readFileSync('pnpm-workspace.yaml', 'utf8')) ?? [];
const pinned = [...catalog.matchAll(/^ {2}"?([^":]+)/gm)].map(([, name]) => name);

/**
 * Commands that download and run a package, with any flags. Matches only at the start of a command, because npx is a
 * noun in prose. `npx --no --` runs only installed packages. Without the second `--`, npm 11 reads the options that
 * follow the name as its own.
 */
const runners =
  /(?<=(?:^[ #$]*|['"`&|;(]|\b[Rr]un|\bUsage:|\b[A-Z_]+=\S*) ?)\b(npx|pnpx|bunx|(?:pnpm|yarn) dlx|npm (?:exec|x|create|init)|pnpm create|yarn create)((?: +(?:--?[a-z][\w-]*|--))*)(?: +([@a-z][^\s`'"]*))?/gm;

/** Commands that install packages. The programs and scripts of these packages run later. */
const installers = /\b(?:npm|pnpm|yarn) (?:i|install|add)\b((?: +[^\s`'"&|;#]+)*)/g;

/** Whether a name is a file or folder, which npm does not read from a registry. */
const isPath = (name: string) => /^(?:\.{0,2}\/|<\w+>|~)|\.tgz$/.test(name);

const packageOf = (name: string) => /^(@[^/@]+\/[^/@]+|[^@/]+)/.exec(name)?.[0] ?? name;

/** Returns the commands of a text that run or install a package that anyone could have published. */
function unpinnedCommands(text: string): string[] {
  const run = [...text.matchAll(runners)].filter(([, , options = '', name]) => {
    if (options === ' --no --' || name === undefined) return false;
    return name !== manifest.packageManager && !isPath(name);
  });
  const installed = [...text.matchAll(installers)].filter(([, list = '']) =>
    list
      .replaceAll(/ --(?:filter|prefix) [^ ]+/g, '')
      .split(' ')
      .some((name) => /^[@a-z]/.test(name) && !isPath(name) && !pinned.includes(packageOf(name))),
  );
  return [...run, ...installed].map(([command]) => command);
}

test('no command of the repository runs or installs a package that someone else could have published', () => {
  expect(files.length).toBeGreaterThan(1_000);
  const unpinned = files.flatMap((file) =>
    unpinnedCommands(readFileSync(file, 'utf8')).map((command) => `${file}: ${command}`),
  );
  expect(unpinned).toEqual([]);
});

test.each([
  'npx client listen',
  'npx --no order-gateway-client listen',
  'npx --yes client',
  'npx -y create-order@1',
  'pnpm dlx order-gateway-client',
  'npm exec -- client listen',
  'yarn dlx @order-gateway/client',
  'pnpx client',
  'npm install order-gateway-client',
  'npm i @order-gateway/client',
  'npm install -D fastify order-gateway',
])('unpinnedCommands finds %s', (command) => {
  expect(unpinnedCommands(`Run \`${command}\` in the project.`)).not.toEqual([]);
});

test.each([
  `npx --yes ${manifest.packageManager} start`,
  'npx --no -- order-gateway-client listen',
  'node_modules/.bin/order-gateway-client listen',
  'npm install ./order-gateway-client-1.0.0.tgz',
  'npm i @grpc/grpc-js @connectrpc/connect',
  'pnpm install --prod --no-optional --frozen-lockfile --filter gateway...',
])('unpinnedCommands accepts %s', (command) => {
  expect(unpinnedCommands(`Run \`${command}\` in the project.`)).toEqual([]);
});

test('the published packages and the gateway have the version of the release', () => {
  const manifests = globSync('{apps,packages}/*/package.json').map((path) => JSON.parse(readFileSync(path, 'utf8')));
  const published = manifests.filter(({ private: isPrivate }) => isPrivate !== true);
  expect(published.map(({ name }) => name).sort()).toEqual(['@order-gateway/client', '@order-gateway/contract']);
  // The bill of materials shows the version of the gateway.
  const versions = [...published, ...manifests.filter(({ name }) => name === 'gateway')].map(({ version }) => version);
  expect(versions).toEqual(Array(3).fill(manifest.version));
  const client = readFileSync('packages/client/src/version.ts', 'utf8');
  expect(client).toContain(`version = '${manifest.version}'`);
});
