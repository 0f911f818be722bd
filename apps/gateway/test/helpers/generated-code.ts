import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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

/** Compiles a file with the command of the examples' README, in strict mode. Rejects if the file has errors. */
export async function compile(folder: string, file: string): Promise<void> {
  const command = await commandOfReadme(/tsc .*(?= &&)/);
  if (!command.endsWith(file)) throw new Error(`the README of the examples does not compile ${file}`);
  const tsc = fileURLToPath(new URL('../bin/tsc', import.meta.resolve('typescript-5')));
  const script = `tsc() { node '${tsc}' --strict "$@"; }; ${command}`;
  await run('sh', ['-c', script], { cwd: folder, timeout: waitLimitMs });
}

/** Returns the command of the examples' README that matches a pattern. */
async function commandOfReadme(pattern: RegExp): Promise<string> {
  const [command] = pattern.exec(await readFile(join(root, 'docs/examples/README.md'), 'utf8')) ?? [];
  if (command === undefined) throw new Error(`the README of the examples has no command that matches ${pattern}`);
  return command;
}

/** Unpacks the contract that a gateway serves, and runs the command of the examples' README that generates Python. */
export async function generatePython(url: string, folder: string): Promise<void> {
  const command = await commandOfReadme(/^protoc .*python_out(?:.*\\\n)*.*$/m);
  const script = `rm -rf proto gen && mkdir gen && curl -fsS "$1/docs/proto.tar" | tar -x && ${command}`;
  await run('sh', ['-euc', script, 'sh', url], { cwd: folder, timeout: waitLimitMs });
}
