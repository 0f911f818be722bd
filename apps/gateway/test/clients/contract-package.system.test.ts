import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { copyPackage } from '../../../../tools/package-copy.ts';
import { pnpm } from '../../../../tools/pnpm.ts';
import { waitLimitMs } from '../../../../tools/test-limits.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { createOrder } from '../helpers/send-order.ts';

const gatewayModules = join(import.meta.dirname, '../../node_modules');
const run = promisify(execFile);

const gateway = useGateway();

/** A project outside the workspace, with the packed package and its peer dependencies installed. */
let project: string;
let orderToken: string;
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'contract-package-'));
  const cwd = await copyPackage('contract', join(project, 'workspace'));
  await run('sh', ['-c', `${pnpm} pack --pack-destination '${project}'`], { cwd });
  const tarballs = (await readdir(project)).filter((file) => file.endsWith('.tgz'));
  await writeFile(join(project, 'package.json'), '{ "type": "module" }');
  const npmOptions = ['--offline', '--no-audit', '--no-fund', '--cache', join(project, 'npm-cache')];
  const runtime = join(gatewayModules, '@bufbuild/protobuf');
  await run('npm', ['install', ...npmOptions, runtime, ...tarballs.map((file) => `./${file}`)], { cwd: project });
  const peerPackages = ['@connectrpc/connect', '@connectrpc/connect-node', '@grpc/grpc-js', '@types/node'];
  for (const name of peerPackages) {
    const path = join(project, 'node_modules', name);
    await mkdir(dirname(path), { recursive: true });
    await symlink(join(gatewayModules, name), path);
  }
  orderToken = (await createOrder(gateway, 'contract')).order_token;
});
afterAll(() => rm(project, { recursive: true, force: true }));

test('the package contains both module formats with types, the proto files, README and licence', async () => {
  const files = await readdir(join(project, 'node_modules/@order-gateway/contract'), {
    recursive: true,
    withFileTypes: true,
  });
  const paths = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
  const names = paths.map((path) => path.split('@order-gateway/contract/')[1] ?? '');
  for (const format of ['esm', 'cjs']) {
    const modules = names.filter((name) => name.startsWith(`dist/${format}/gateway/v1/`));
    expect(modules).toContain(`dist/${format}/gateway/v1/checkout_service_pb.js`);
    expect(modules).toContain(`dist/${format}/gateway/v1/checkout_service_pb.d.ts`);
  }
  expect(names).toContain('dist/proto/gateway/v1/checkout_service.proto');
  const outside = names.filter((name) => !/^dist\/(proto|(esm|cjs)\/(gateway|google))\//.test(name));
  expect(outside.sort()).toEqual(['LICENSE', 'README.md', 'dist/cjs/package.json', 'package.json']);
});

/**
 * Compiles a file in the project with `--strict` and the package's types, and runs the result. Returns its standard
 * output. Rejects with the compiler's errors.
 */
async function compileAndRun(file: string, content: string, module: string): Promise<string> {
  await writeFile(join(project, file), content);
  const strict = ['--strict', '--target', 'es2023', '--lib', 'es2023,dom', '--types', 'node', '--ignoreConfig'];
  const tsc = join(gatewayModules, '.bin/tsc');
  // Some types of @types/node contradict each other.
  await run(tsc, [...strict, '--module', module, '--skipLibCheck', file], { cwd: project }).catch((error) => {
    throw new Error(error.stdout);
  });
  const env = {
    PATH: process.env.PATH,
    GRPC_ADDRESS: `127.0.0.1:${gateway.grpcPort}`,
    ORDER_TOKEN: orderToken,
    CLIENT_ID: gateway.checkout.credentials.clientId,
    CLIENT_SECRET: gateway.checkout.credentials.clientSecret,
  };
  const compiled = file.replace(/ts$/, 'js');
  return (await run(process.execPath, [compiled], { cwd: project, env, timeout: waitLimitMs })).stdout;
}

/** Returns the programs in the README of the installed package. */
async function examples(): Promise<string[]> {
  const readme = await readFile(join(project, 'node_modules/@order-gateway/contract/README.md'), 'utf8');
  return [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code = '']) => code);
}

test('each example in the README calls a gateway from an ES module', async () => {
  const programs = await examples();
  expect(programs).toHaveLength(2);
  for (const [index, code] of programs.entries()) {
    expect(await compileAndRun(`example-${index}.mts`, code, 'nodenext')).toBe('Test Shop 1249.5 EUR\n');
  }
});

test('each example in the README calls a gateway from a CommonJS module', async () => {
  for (const [index, code] of (await examples()).entries()) {
    const [imports, body] = code.split('\n\n', 2);
    const program = `${imports}\nvoid (async () => {\n${body}\n})();`;
    expect(await compileAndRun(`example-${index}.cts`, program, 'node16')).toBe('Test Shop 1249.5 EUR\n');
  }
});

test('the types of the package reject a field that does not exist', async () => {
  const program = `import type { CheckoutOrder } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
    export const nameOf = (order: CheckoutOrder): string => order.merchant;`;
  await expect(compileAndRun('wrong.mts', program, 'nodenext')).rejects.toThrow("Property 'merchant' does not exist");
});
