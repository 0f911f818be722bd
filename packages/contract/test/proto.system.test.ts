import { execFile } from 'node:child_process';
import { glob, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { type DescMethod, isFieldSet } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel, MethodOptionsSchema } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { waitLimitMs } from '../../../tools/test-limits.ts';
import { services } from '../src/operations.ts';

const run = promisify(execFile);
const packageFolder = join(import.meta.dirname, '..');
const programs = join(packageFolder, 'node_modules/.bin');
const protoFolder = '../../proto';

/** Runs buf and returns its findings, empty if there are none. */
async function findingsOf(...args: string[]): Promise<string> {
  // buf finds its plugins through PATH.
  const env = { ...process.env, PATH: `${programs}${delimiter}${process.env.PATH}` };
  return run(join(programs, 'buf'), args, { cwd: packageFolder, timeout: waitLimitMs, env }).then(
    ({ stdout }) => stdout,
    (error: { stdout: string; stderr: string }) => `${error.stdout}${error.stderr}` || 'buf failed',
  );
}

test('the proto files follow the lint rules', async () => {
  expect(await findingsOf('lint', protoFolder)).toBe('');
});

test('the proto files are compatible with the last release', async () => {
  expect(await findingsOf('breaking', protoFolder, '--against', 'frozen.binpb.gz')).toBe('');
});

test('the proto files are formatted', async () => {
  expect(await findingsOf('format', '--diff', '--exit-code', protoFolder)).toBe('');
});

test('every method declares its idempotency level, and only methods that return a new secret are not idempotent', () => {
  const methods = services.flatMap((service) => service.methods as readonly DescMethod[]);
  const { idempotencyLevel } = MethodOptionsSchema.field;
  const undeclared = methods.filter(({ proto: { options } }) => !options || !isFieldSet(options, idempotencyLevel));
  expect(undeclared.map(({ name }) => name)).toEqual([]);
  const notIdempotent = methods.filter(
    ({ idempotency }) => idempotency === MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN,
  );
  expect(notIdempotent.map(({ name }) => name)).toEqual([
    'CreateWebhookEndpoint',
    'RotateWebhookSecret',
    'CreateClientSecret',
  ]);
});

test('the committed code is generated from the proto files', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'contract-'));
  try {
    expect(await findingsOf('generate', '--output', folder)).toBe('');
    const filesIn = (root: string) => glob('**/*.ts', { cwd: join(root, 'gen') });
    const files = await Array.fromAsync(filesIn(folder));
    expect((await Array.fromAsync(filesIn(packageFolder))).toSorted()).toEqual(files.toSorted());
    for (const file of files) {
      const generated = await readFile(join(folder, 'gen', file), 'utf8');
      expect(await readFile(join(packageFolder, 'gen', file), 'utf8'), file).toBe(generated);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
