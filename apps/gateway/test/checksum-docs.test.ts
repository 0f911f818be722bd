import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checksumOf } from '@gateway/domain/order-checksum';
import { parseOrder } from '@gateway/domain/parse-order';
import { beforeAll, expect, test } from 'vitest';

const secret = 'sk_ThisSecretIsOnlyAnExampleForTheDocumentation0';

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

/** What a program of Node.js prints, beside the order that it reads. */
async function outputOf(code: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'checksum-docs-'));
  try {
    await writeFile(join(folder, 'example.mjs'), code);
    await writeFile(join(folder, 'order.json'), blocksOf('json')[0] ?? '');
    const { stdout } = await promisify(execFile)(process.execPath, ['example.mjs'], { cwd: folder, timeout: 30_000 });
    return stdout.trim();
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

test('docs/checksum.md: the program prints the checksum', async () => {
  expect(await outputOf(blocksOf('js')[0] ?? '')).toBe(statedChecksum());
}, 60_000);
