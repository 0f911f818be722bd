import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { waitLimitMs } from '../../../../tools/test-limits.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '../../../..');

// openapi-typescript calls the compiler API, which TypeScript 7 does not have.
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'typescript' ? next(import.meta.resolve('typescript-5'), context) : next(specifier, context),
});

/** Writes the types that openapi-typescript generates from a gateway's OpenAPI document to `order-gateway.d.ts`. */
export async function generateTypes(url: string, folder: string): Promise<void> {
  const { astToString, default: openapiTS } = await import('openapi-typescript');
  const types = await openapiTS(await (await fetch(`${url}/openapi.json`)).text());
  await writeFile(join(folder, 'order-gateway.d.ts'), astToString(types));
}

/** Compiles a file in a folder to JavaScript, with the project's compiler options. Rejects if the file has errors. */
export async function compile(folder: string, file: string): Promise<void> {
  const compilerOptions = { lib: ['esnext', 'dom'], noEmit: false, rewriteRelativeImportExtensions: true };
  const config = { extends: join(root, 'tsconfig.base.json'), files: [file], compilerOptions };
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
  await run(join(root, 'node_modules/.bin/tsc'), ['-p', folder], { timeout: waitLimitMs });
}

/** Unpacks the contract that a gateway serves, and runs the command of the examples' README that generates Python. */
export async function generatePython(url: string, folder: string): Promise<void> {
  const readme = await readFile(join(root, 'docs/examples/README.md'), 'utf8');
  const [command] = /^protoc .*python_out(?:.*\\\n)*.*$/m.exec(readme) ?? [];
  if (command === undefined) throw new Error('the README of the examples has no command that generates Python');
  const script = `rm -rf proto gen && mkdir gen && curl -fsS "$1/docs/proto.tar" | tar -x && ${command}`;
  await run('sh', ['-euc', script, 'sh', url], { cwd: folder, timeout: waitLimitMs });
}
