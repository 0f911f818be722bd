import { protocols as doors } from '@gateway/fixtures/client';
import type { Replay } from './replay-fixtures.ts';

/** The whole report of a run: a table of fixtures and doors, every difference, and the tally. */
export function replayReport(replays: readonly Replay[]): string {
  const differing = replays.filter(({ outcome }) => outcome === 'differs');
  return [table(replays), ...differing.map(differencesTold), `${tally(replays)}\n`].join('\n');
}

/** The differences of one fixture at one door, with what was expected and what came. */
export function differencesTold({ fixture, door, differences }: Replay): string {
  const lines = differences.map(
    ({ call, what, expected, actual }) =>
      `  call ${call}, ${what}\n    expected  ${shortened(expected)}\n    actual    ${shortened(actual)}`,
  );
  return [`${fixture.file} @ ${door}: ${fixture.name}`, ...lines, ''].join('\n');
}

function table(replays: readonly Replay[]): string {
  const rows = new Map<string, string[]>();
  for (const { fixture, door, outcome } of replays) {
    const row = rows.get(fixture.file) ?? [];
    row[doors.indexOf(door)] = outcome;
    rows.set(fixture.file, row);
  }
  const cells = [['fixture', ...doors], ...[...rows].map(([file, row]) => [file, ...row])];
  const widths = ['', ...doors].map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

function tally(replays: readonly Replay[]): string {
  const count = (outcome: Replay['outcome']) => replays.filter((replay) => replay.outcome === outcome).length;
  const fixtures = new Set(replays.map(({ fixture }) => fixture.file)).size;
  const parts = [`${count('ok')} ok`, `${count('differs')} differ`, `${count('not said there')} not said there`];
  if (count('no merchant') > 0) parts.push(`${count('no merchant')} without their merchant`);
  return `${fixtures} fixtures at ${doors.length} doors: ${parts.join(', ')}`;
}

/** Long values, such as a note of 70,000 characters, would bury the rest. */
const shownMaxCharacters = 400;

function shortened(text: string): string {
  return text.length <= shownMaxCharacters ? text : `${text.slice(0, shownMaxCharacters)}… (${text.length} characters)`;
}
