import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createRandomBytes } from '../../../src/runtime/secrets/random-bytes.ts';

test('no random bytes are returned twice, regardless of the size of the requests', () => {
  for (const count of [16, 32, 48, 8_192, 10_000]) {
    const randomBytes = createRandomBytes();
    // 16 random bytes do not repeat in practice.
    const chunks = Array.from({ length: 100 }, () => Buffer.from(randomBytes(count)).toString('hex').match(/.{32}/g));
    expect(new Set(chunks.flat()).size).toBe(chunks.flat().length);
  }
});

test('random bytes come from the system, not from Math.random', () => {
  const source = join(import.meta.dirname, '../../../src/runtime/secrets/random-bytes.ts');
  const script = `import { createRandomBytes } from ${JSON.stringify(source)};
    console.log(Math.random(), Buffer.from(createRandomBytes()(32)).toString('hex'));`;
  const args = ['--random-seed=1', '--input-type=module', '--eval', script];
  const run = () => execFileSync(process.execPath, args, { encoding: 'utf8' }).split(' ');
  const [first, second] = [run(), run()];
  expect(second[0]).toBe(first[0]);
  expect(second[1]).not.toBe(first[1]);
});
