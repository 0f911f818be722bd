import { type Protocol as Door, protocols as doors } from '@gateway/fixtures/client';
import type { Fixture } from '@gateway/fixtures/fixture';
import { expect, test } from 'vitest';
import type { Replay } from './replay-fixtures.ts';
import { replayReport } from './replay-report.ts';

const fixture: Fixture = { file: 'amount-zero', name: 'zero is out of range', calls: [], merchants: new Set() };

function replay(door: Door, more: Partial<Replay> = {}): Replay {
  return { fixture, door, outcome: 'ok', differences: [], ...more };
}

test('the report is a table, each difference with both sides, and the tally', () => {
  const differences = [{ call: 2, what: 'status', expected: '400', actual: '500' }];
  const replays = [
    replay('json', { outcome: 'differs', differences }),
    replay('connect'),
    replay('grpc-web', { outcome: 'not said there' }),
    replay('grpc', { outcome: 'not said there' }),
  ];
  expect(replayReport(replays)).toBe(`fixture      json     connect  grpc-web        grpc
amount-zero  differs  ok       not said there  not said there

amount-zero @ json: zero is out of range
  call 2, status
    expected  400
    actual    500

1 fixtures at 4 doors: 1 ok, 1 differ, 2 not said there
`);
});

test('a long value is cut', () => {
  const differences = [{ call: 1, what: 'order_note', expected: 'x'.repeat(70_000), actual: 'nothing' }];
  const report = replayReport(doors.map((door) => replay(door, { outcome: 'differs', differences })));
  expect(report).toContain('x… (70000 characters)');
  expect(report.length).toBeLessThan(3_000);
});
