import { execFile, execFileSync } from 'node:child_process';
import { copyFile, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { leftOut } from '../../../tools/left-out.ts';
import { credentialHeaders, type RunningGateway, runGateway } from './running-gateway.ts';

const examplesFolder = join(import.meta.dirname, '../../../docs/examples');

/** In this folder the examples find the packages that they import. */
const projectFolder = join(import.meta.dirname, '../node_modules/.cache/examples');

/** The examples and their commands. Node.js and curl are required; the others are tested if they are installed. */
const examples = [
  { file: 'create-order.sh', language: 'curl', runs: 'sh', version: ['curl', '--version'] },
  { file: 'create-order.mjs', language: 'Node.js', runs: process.execPath, version: [process.execPath, '--version'] },
  { file: 'connect-client.mjs', language: 'Connect', runs: process.execPath, version: [process.execPath, '--version'] },
  { file: 'grpc-client.mjs', language: 'grpc-js', runs: process.execPath, version: [process.execPath, '--version'] },
  { file: 'create_order.py', language: 'Python', runs: 'python3', version: ['python3', '--version'] },
  { file: 'create-order.php', language: 'PHP', runs: 'php', version: ['php', '-r', 'curl_version();'] },
] as const;

const present = examples.filter(({ version: [command, ...args] }) => runsAtAll(command, args));
const absent = examples.filter((example) => !present.includes(example));

function runsAtAll(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore', timeout: 20_000 });
    return true;
  } catch {
    return false;
  }
}

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await runGateway();
  await mkdir(projectFolder, { recursive: true });
});
afterAll(() => gateway?.close());

/** Runs an example and returns its last line, parsed as JSON. */
async function run(file: string, runs: string, more: Record<string, string>): Promise<unknown> {
  const copy = join(projectFolder, file);
  await copyFile(join(examplesFolder, file), copy);
  const env = {
    PATH: process.env.PATH,
    BASE_URL: gateway.url,
    GRPC_ADDRESS: `127.0.0.1:${gateway.grpcPort}`,
    PROTO_FILE: join(import.meta.dirname, '../../../proto/gateway/v1/order_service.proto'),
    CLIENT_ID: gateway.credentials.clientId,
    CLIENT_SECRET: gateway.credentials.clientSecret,
    ...more,
  };
  const { stdout } = await promisify(execFile)(runs, [copy], { env, timeout: 20_000 });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
}

describe('the example in', () => {
  test.each(present.map(({ language, file, runs }) => [language, file, runs] as const))(
    '%s creates an order and looks it up again',
    async (_, file, runs) => {
      const orderId = `example-${file}`;
      const printed = await run(file, runs, { ORDER_ID: orderId });
      const headers = credentialHeaders(gateway.credentials);
      const found = await (await fetch(`${gateway.url}/order/${orderId}`, { headers })).json();
      // Protobuf's JSON writes 64-bit integers as text.
      expect({ ...Object(printed), service_order_id: Number(Object(printed).service_order_id) }).toEqual(found);
    },
    30_000,
  );

  test.each(present.map(({ language, file, runs }) => [language, file, runs] as const))(
    '%s fails with the error code if the credentials are wrong',
    async (_, file, runs) => {
      const failure = await run(file, runs, { ORDER_ID: 'rejected', CLIENT_SECRET: `sk_${'0'.repeat(43)}` }).then(
        () => 'it succeeded',
        ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr,
      );
      expect(failure).toMatch(/unauthenticated/i);
    },
    30_000,
  );
});

for (const { language, version } of absent) leftOut(`the example in ${language}`, `${version[0]} is not installed`);

test(`run on this machine: ${present.map(({ language }) => language).join(', ')}; left out: ${absent.map(({ language }) => language).join(', ') || 'none'}`, () => {
  const languages: readonly string[] = present.map(({ language }) => language);
  expect(languages).toEqual(expect.arrayContaining(['curl', 'Node.js', 'Connect', 'grpc-js']));
});

test('every example is run by these tests', async () => {
  expect((await readdir(examplesFolder)).filter((file) => !file.endsWith('.md')).sort()).toEqual(
    examples.map(({ file }) => file).sort(),
  );
});
