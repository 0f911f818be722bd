import { type Fixture, type Protocol, protocols } from '@order-gateway/fixtures';
import { expect, test } from 'vitest';
import { junitReport } from './junit.ts';
import type { Replay } from './replay-fixtures.ts';
import { replayReport } from './report.ts';

const names = { file: 'amount-zero', folder: 'create-order', name: 'zero is out of range' };
const fixture: Fixture = { ...names, calls: [], merchants: new Set() };

function replay(protocol: Protocol, more: Partial<Replay> = {}): Replay {
  return { fixture, protocol, outcome: 'ok', differences: [], ...more };
}

test('the report has a table, both values of each difference, and the totals', () => {
  const differences = [{ call: 2, subject: 'status', expected: '400', actual: '500' }];
  const replays = [
    replay('json', { outcome: 'differs', differences }),
    replay('connect'),
    replay('grpc-web', { outcome: '-' }),
    replay('grpc', { outcome: '-' }),
  ];
  expect(replayReport(replays)).toBe(`fixture      json     connect  grpc-web  grpc
amount-zero  differs  ok       -         -

amount-zero over json: zero is out of range
  call 2, status
    expected  400
    actual    500

1 fixtures in 4 protocols: 1 ok, 1 differ, 2 not possible in the protocol (-)
`);
});

test('a long value is cut', () => {
  const differences = [{ call: 1, subject: 'order_note', expected: 'x'.repeat(70_000), actual: 'nothing' }];
  const report = replayReport(protocols.map((protocol) => replay(protocol, { outcome: 'differs', differences })));
  expect(report).toContain('x… (70000 characters)');
  expect(report.length).toBeLessThan(3_000);
});

test('JUnit XML has a suite for each protocol, escapes values, and counts failed and skipped fixtures', () => {
  const differences = [{ call: 2, subject: 'status', expected: '<400>', actual: '"\u{0}"' }];
  const replays = [replay('json', { outcome: 'differs', differences }), replay('grpc', { outcome: '-' })];
  expect(junitReport(replays)).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="order-gateway-conformance" tests="2" failures="1" skipped="1">
<testsuite name="json" tests="1" failures="1" skipped="0">
<testcase classname="json.create-order" name="amount-zero: zero is out of range"><failure message="call 2, status">expected &lt;400&gt;
actual   &quot;\u{FFFD}&quot;</failure></testcase>
</testsuite>
<testsuite name="grpc" tests="1" failures="0" skipped="1">
<testcase classname="grpc.create-order" name="amount-zero: zero is out of range"><skipped message="the protocol cannot carry it"/></testcase>
</testsuite>
</testsuites>
`);
});
