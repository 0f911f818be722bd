import { readdirSync, readFileSync } from 'node:fs';
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fixturesFolder } from '@order-gateway/fixtures';
import { rolldown } from 'rolldown';
import manifest from '../../../package.json' with { type: 'json' };

// Builds the package of the conformance kit in the folder given as an argument: the kit's code in one file, the
// fixtures, the sample server, the README and the licences.

const [folder = ''] = process.argv.slice(2);
if (folder === '') throw new Error('Usage: node build-conformance.ts FOLDER');
await mkdir(folder, { recursive: true });
await using build = await rolldown({ input: join(import.meta.dirname, '../src/conformance.ts'), platform: 'node' });
const banner = '#!/usr/bin/env node';
const { output } = await build.write({
  file: join(folder, 'dist/cli.js'),
  format: 'esm',
  banner,
  codeSplitting: false,
});
await cp(fixturesFolder, join(folder, 'data'), { recursive: true });
await cp(join(import.meta.dirname, '../../../LICENSE'), join(folder, 'LICENSE'));
for (const file of ['README.md', 'sample-server.mjs']) await cp(join(import.meta.dirname, file), join(folder, file));
await writeFile(join(folder, 'THIRD-PARTY-LICENCES.txt'), licences(output[0].moduleIds));
const described = {
  name: '@order-gateway/conformance',
  version: manifest.version,
  description: "Checks an implementation of the order gateway's API against the gateway's own fixtures",
  license: manifest.license,
  type: 'module',
  engines: manifest.engines,
  bin: { 'order-gateway-conformance': './dist/cli.js' },
};
await writeFile(join(folder, 'package.json'), `${JSON.stringify(described, undefined, 2)}\n`);

/** The texts of the licences of all packages among these modules. */
function licences(modules: readonly string[]): string {
  const folders = modules.flatMap((module) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(module)?.[0] ?? []);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((file) => /^(licen[cs]e|copying)/i.test(file));
    const text = file === undefined ? '' : `\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
    return `${name} ${version}: ${license}\n${text}`;
  });
  return texts.join(`\n${'-'.repeat(80)}\n\n`);
}
