import { expect, test } from 'vitest';
import { missing, mustSkip } from '../../../tools/skip-if-missing.ts';
import { contenderNames } from '../src/contenders.ts';
import { allStored, bench, outcomes } from './run-bench.ts';

const reason = missing('pgbench') ?? missing('wrk');

test.skipIf(mustSkip('every contender of the bench', reason))(
  'every contender creates orders under each of its loads, and no temporary files are left behind',
  async () => {
    const { stdout, sections } = await bench('--rounds', '1', '--seconds', '1');
    const names = contenderNames;
    expect(sections.map(outcomes)).toEqual([
      allStored(names),
      allStored(names.filter((name) => /^(gateway|libraries|bare)-/.test(name)).concat('insert')),
      allStored(['gateway-grpc', 'bare-http2']),
    ]);
    expect(sections.map(({ ratios }) => ratios.length)).toEqual([14, 6, 1]);
    for (const name of names) expect(stdout).toContain(`| ${name} `);
  },
);

test('the gateway is compared on an empty table and on one that has orders', async () => {
  const { sections } = await bench('--growth', '1000', '--only', 'gateway-grpc', '--rounds', '1', '--seconds', '1');
  expect(sections.map(outcomes)).toEqual([allStored(['gateway-grpc', 'gateway-grpc on 1000 orders'])]);
  expect(sections[0]?.ratios).toHaveLength(1);
});
