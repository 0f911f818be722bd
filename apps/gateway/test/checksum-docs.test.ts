import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checksumOf } from '@gateway/domain/order-checksum';
import { parseOrder } from '@gateway/domain/parse-order';
import { beforeAll, expect, test } from 'vitest';
import { leftOut } from '../../../tools/left-out.ts';

const secret = 'sk_ThisSecretIsOnlyAnExampleForTheDocumentation0';

/** The command and file name for each language. */
const runners: Readonly<Record<string, { readonly command: string; readonly file: string }>> = {
  sh: { command: 'sh', file: 'example.sh' },
  js: { command: process.execPath, file: 'example.mjs' },
  python: { command: 'python3', file: 'example.py' },
  php: { command: 'php', file: 'example.php' },
};

let page: string;
beforeAll(async () => {
  page = await readFile(new URL('../../../docs/checksum.md', import.meta.url), 'utf8');
});

function blocksOf(language: string): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(([, code]) => code ?? '');
}

function statedChecksum(): string {
  return /^v1=[0-9a-f]{64}$/m.exec(blocksOf('text')[0] ?? '')?.[0] ?? '';
}

function checksumWith(change: object): string {
  const parsed = parseOrder({ ...JSON.parse(blocksOf('json')[0] ?? ''), order_checksum: 'x', ...change });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.failure));
  return checksumOf(parsed.value, secret);
}

/** Returns what a program prints, or `undefined` if its language is not installed. */
async function outputOf(
  { command, file }: { command: string; file: string },
  code: string,
): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'checksum-docs-'));
  try {
    await writeFile(join(folder, file), code);
    await writeFile(join(folder, 'order.json'), blocksOf('json')[0] ?? '');
    const { stdout } = await promisify(execFile)(command, [file], { cwd: folder, timeout: 30_000 });
    return stdout.trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  } finally {
    await rm(folder, { recursive: true });
  }
}

test('docs/checksum.md: the worked example has the checksum that the gateway computes', () => {
  expect(statedChecksum()).toBe(checksumWith({}));
});

test('docs/checksum.md: every test vector has the checksum that the gateway computes', () => {
  const vectors = blocksOf('jsonl')
    .join('')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(vectors.length).toBeGreaterThan(10);
  for (const { change, checksum } of vectors) expect([change, checksumWith(change)]).toEqual([change, checksum]);
});

test('docs/checksum.md: every example in an installed language prints the checksum', async () => {
  const ran: string[] = [];
  for (const [language, runner] of Object.entries(runners)) {
    const output = await outputOf(runner, blocksOf(language)[0] ?? '');
    if (output === undefined) {
      leftOut(`the checksum example in ${language}`, `${runner.command} is not installed`);
      continue;
    }
    expect([language, output]).toEqual([language, statedChecksum()]);
    ran.push(language);
  }
  expect(ran).toEqual(expect.arrayContaining(['sh', 'js']));
}, 60_000);
