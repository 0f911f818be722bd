import { readFile } from 'node:fs/promises';
import { parseOrder } from '@order-gateway/domain/orders';
import { checksumOf } from '@order-gateway/domain/signing';
import { beforeAll, expect, test } from 'vitest';

const secret = 'sk_ThisSecretIsOnlyAnExampleForTheDocumentation0';

let page: string;
beforeAll(async () => {
  page = await readFile(new URL('../../../../docs/checksum.md', import.meta.url), 'utf8');
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
  return checksumOf(parsed.value.fields, secret);
}

test('docs/checksum.md: the worked example has the checksum that the gateway computes', () => {
  expect(page).toContain(`\`${secret}\``);
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
