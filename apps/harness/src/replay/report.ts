import { columns } from '../command/text.ts';
import type { Replay } from './replay-fixtures.ts';

/** Returns the report of a run: a table of fixtures and protocols, every difference, and the totals. */
export function replayReport(replays: readonly Replay[]): string {
  const rows = Map.groupBy(replays, ({ fixture }) => fixture.file);
  const names = [...new Set(replays.map(({ protocol }) => protocol))];
  const table = [...rows].map(([file, ofFixture]) => [file, ...ofFixture.map(({ outcome }) => outcome)]);
  const differing = replays.filter(({ outcome }) => outcome === 'differs');
  const parts = [columns([['fixture', ...names], ...table]), '', ...differing.map(formatDifferences)];
  return `${[...parts, totals(replays, rows.size, names.length)].join('\n')}\n`;
}

/** Returns the differences of one fixture in one protocol, with the expected and the actual values. */
export function formatDifferences({ fixture, protocol, differences }: Replay): string {
  const lines = differences.map(
    ({ call, subject, expected, actual }) =>
      `  call ${call}, ${subject}\n    expected  ${shortened(expected)}\n    actual    ${shortened(actual)}`,
  );
  return [`${fixture.file} over ${protocol}: ${fixture.name}`, ...lines, ''].join('\n');
}

function totals(replays: readonly Replay[], fixtures: number, protocols: number): string {
  const count = (wanted: Replay['outcome']) => replays.filter(({ outcome }) => outcome === wanted).length;
  const skipped = count('no merchant') === 0 ? '' : `, ${count('no merchant')} skipped because a merchant is missing`;
  const counts = `${count('ok')} ok, ${count('differs')} differ, ${count('-')} not possible in the protocol (-)${skipped}`;
  return `${fixtures} fixtures in ${protocols} protocols: ${counts}`;
}

const shownMax = 500;

function shortened(text: string): string {
  return text.length <= shownMax ? text : `${text.slice(0, shownMax)}… (${text.length} characters)`;
}
