import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { supportedNodes } from '../../../tools/installed-nodes.ts';
import { copyPackage } from '../../../tools/package-copy.ts';
import manifest from '../package.json' with { type: 'json' };

const packageFolder = join(import.meta.dirname, '..');
const run = promisify(execFile);

/** The folder of a project in which the packed tarball is installed. */
let project: string;
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'client-package-'));
  const cache = ['--cache', join(project, 'npm-cache')];
  const cwd = await copyPackage('client', join(project, 'workspace'));
  await run('npm', ['pack', '--pack-destination', project, ...cache], { cwd });
  const tarballs = (await readdir(project)).filter((file) => file.endsWith('.tgz'));
  await writeFile(join(project, 'package.json'), '{ "type": "module" }');
  await run(
    'npm',
    ['install', '--offline', '--no-audit', '--no-fund', ...cache, ...tarballs.map((file) => `./${file}`)],
    {
      cwd: project,
    },
  );
});
afterAll(() => rm(project, { recursive: true, force: true }));

test('the package contains JavaScript, types, README and licence, and no tests or sources', async () => {
  const files = await readdir(join(project, 'node_modules/@order-gateway/client'), { recursive: true });
  const isBuilt = (file: string) => /^dist\/(?:[a-z-]+\/)?[a-z-]+(\.d\.ts|\.js)$/.test(file);
  expect(files.filter(isBuilt)).toEqual(expect.arrayContaining(['dist/index.js', 'dist/index.d.ts']));
  const otherFiles = [
    'LICENSE',
    'README.md',
    'dist',
    'dist/calls',
    'dist/package.json',
    'dist/signatures',
    'package.json',
  ];
  expect(files.filter((file) => !isBuilt(file)).sort()).toEqual(otherFiles);
});

test('Git ignores the files that `npm pack` writes into the folder of the package', async () => {
  const left = ['dist/index.js', ...(await readdir(project)).filter((file) => file.endsWith('.tgz'))];
  const { stdout } = await run('git', ['check-ignore', ...left], { cwd: packageFolder });
  expect(stdout.trim().split('\n')).toEqual(left);
});

test('the package has no dependencies', async () => {
  expect(await readdir(join(project, 'node_modules'))).toEqual(['.bin', '.package-lock.json', '@order-gateway']);
  expect(await readdir(join(project, 'node_modules/@order-gateway'))).toEqual(['client']);
});

const names = 'createClient, GatewayNetworkError, orderChecksum, verifyReturn, verifyWebhook';

test('every supported version of Node.js on this machine runs the command of the package', async () => {
  for (const command of supportedNodes().values()) {
    const failure = await run(command, ['node_modules/.bin/order-gateway-client'], { cwd: project }).catch(
      (error) => error,
    );
    expect([failure.code, failure.stderr]).toEqual([2, expect.stringContaining('Usage: order-gateway-client listen')]);
    const { stdout } = await run(command, ['node_modules/.bin/order-gateway-client', '--version'], { cwd: project });
    expect(stdout).toBe(`${manifest.version}\n`);
  }
});

test.each([
  ['import', 'module', [], `import { ${names} } from '@order-gateway/client';`],
  // The flag makes `require` reject ES modules, as Node.js 20 before 20.19 does.
  [
    'require',
    'commonjs',
    ['--no-experimental-require-module'],
    `const { ${names} } = require('@order-gateway/client');`,
  ],
])('every supported version of Node.js on this machine loads the package with %s', async (_, type, flags, imports) => {
  const program = `(async () => {
    const client = createClient({ baseUrl: 'http://127.0.0.1:1', clientId: 'app_1', clientSecret: 'sk_1', retries: 0 });
    const error = await client.getOrder('x').catch((cause) => cause);
    const checksum = await orderChecksum({ order_amount: '1.50' }, 'sk_1');
    console.log(error instanceof GatewayNetworkError, checksum.slice(0, 3), typeof verifyReturn, typeof verifyWebhook);
  })();`;
  for (const [version, command] of supportedNodes()) {
    const options = [...flags, `--input-type=${type}`, '-e', `${imports}\n${program}`];
    const { stdout } = await run(command, options, { cwd: project });
    expect([version, stdout.trim()]).toEqual([version, 'true v1= function function']);
  }
});

/** Returns the errors of a version of TypeScript for a file of the project. */
async function compilerErrors(compiler: string, file: string, content: string, ...options: string[]): Promise<string> {
  await writeFile(join(project, file), content);
  const tsc = join(packageFolder, 'node_modules', compiler, 'bin/tsc');
  const strict = ['--target', 'es2022', '--lib', 'es2022,dom', '--strict', '--noEmit'];
  return run(process.execPath, [tsc, ...strict, ...options, file], { cwd: project }).then(
    ({ stdout }) => stdout,
    (error) => error.stdout,
  );
}

const typed = `
  import { createClient, GatewayError } from '@order-gateway/client';
  const client = createClient({ baseUrl: 'https://pay.example.com', clientId: 'app_1', clientSecret: 'sk_1' });
  export async function list() {
    for await (const order of client.listOrders({ status: 'PAID' })) order.paid_at satisfies string | undefined;
  }
  client.getOrder('x').catch((error) => error instanceof GatewayError && error.code === 'not_found');
  // @ts-expect-error: this status does not exist
  client.listOrders({ status: 'FOO' });`;

test.each([
  ['program.mts', 'node16', 'typescript'],
  ['program.cts', 'node16', 'typescript'],
  ['program.mts', 'nodenext', 'typescript'],
  ['program.cts', 'nodenext', 'typescript'],
  ['program.mts', 'node16', 'typescript-5'],
  ['program.cts', 'nodenext', 'typescript-5'],
])('%s compiles with the types of the package, the module setting %s and %s', async (file, module, compiler) => {
  expect(await compilerErrors(compiler, file, typed, '--module', module)).toBe('');
});

/** Declares the names that the examples of the README use without declaring them. */
const declarations = `
  import type { FieldError, GatewayClient, NewOrder } from '@order-gateway/client';
  declare global {
    const client: GatewayClient, order: NewOrder, url: string;
    function showFields(errors: readonly FieldError[]): void;
    function sendAgainLater(order: NewOrder): void;
  }`;

test('every example of the README compiles in strict mode', async () => {
  const readme = await readFile(join(project, 'node_modules/@order-gateway/client/README.md'), 'utf8');
  const examples = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code = '']) => code);
  expect(examples.length).toBeGreaterThanOrEqual(4);
  await writeFile(join(project, 'declarations.d.ts'), declarations);
  const types = ['--typeRoots', join(packageFolder, 'node_modules/@types'), '--types', 'node'];
  for (const [index, code] of examples.entries()) {
    const options = ['--module', 'nodenext', '--skipLibCheck', ...types, 'declarations.d.ts'];
    expect([code, await compilerErrors('typescript', `example-${index}.mts`, code, ...options)]).toEqual([code, '']);
  }
});
