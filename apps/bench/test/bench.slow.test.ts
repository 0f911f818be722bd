import { expect, test } from 'vitest';
import { leftOut, missing } from '../../../tools/left-out.ts';
import { contenderNames } from '../src/contenders.ts';
import { allGood, bench, outcomes } from './run-bench.ts';

const lacksPgbench = leftOut('bench', missing('pgbench'));

test('every contender creates orders, alone and with many callers, and nothing is left behind', async () => {
  const { stdout, sections } = await bench('--rounds', '1', '--seconds', '1');
  const names = contenderNames.filter((name) => name !== 'pgbench' || !lacksPgbench);
  expect(sections.map(outcomes)).toEqual([
    allGood(names),
    allGood(names.filter((name) => /^(gateway|libraries|bare)-/.test(name)).concat('insert')),
    allGood(['gateway-grpc', 'bare-http2']),
  ]);
  expect(sections.map(({ ratios }) => ratios.length)).toEqual([lacksPgbench ? 10 : 12, 6, 1]);
  for (const name of names) expect(stdout).toContain(`| ${name} `);
});

test('the gateway is compared on an empty table and on one that has orders', async () => {
  const { sections } = await bench('--growth', '1000', '--only', 'gateway-grpc', '--rounds', '1', '--seconds', '1');
  expect(sections.map(outcomes)).toEqual([allGood(['gateway-grpc', 'gateway-grpc, 1000 orders before'])]);
  expect(sections[0]?.ratios).toHaveLength(1);
});
