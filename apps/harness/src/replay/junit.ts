import type { Replay } from './replay-fixtures.ts';

/**
 * Returns the result of a run as JUnit XML: a suite for each protocol, and a test case for each fixture. A fixture is
 * skipped if the protocol cannot carry it or an account that it needs is missing.
 */
export function junitReport(replays: readonly Replay[]): string {
  const suites = [...Map.groupBy(replays, ({ protocol }) => protocol)].map(
    ([protocol, cases]) => `<testsuite ${attributes(protocol, cases)}>\n${cases.map(testCase).join('')}</testsuite>\n`,
  );
  const all = attributes('order-gateway-conformance', replays);
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ${all}>\n${suites.join('')}</testsuites>\n`;
}

function attributes(name: string, replays: readonly Replay[]): string {
  const count = (...outcomes: Replay['outcome'][]) =>
    replays.filter(({ outcome }) => outcomes.includes(outcome)).length;
  return `name="${name}" tests="${replays.length}" failures="${count('differs')}" skipped="${count('-', 'no merchant')}"`;
}

function testCase({ fixture, protocol, outcome, differences }: Replay): string {
  const classname = `${protocol}.${fixture.folder}`;
  const start = `<testcase classname="${classname}" name="${escaped(`${fixture.file}: ${fixture.name}`)}"`;
  if (outcome === 'ok') return `${start}/>\n`;
  if (outcome !== 'differs') {
    const reason = outcome === '-' ? 'the protocol cannot carry it' : 'a merchant that it needs is missing';
    return `${start}><skipped message="${reason}"/></testcase>\n`;
  }
  const failures = differences.map(({ call, subject, expected, actual }) => {
    const text = `expected ${expected}\nactual   ${actual}`;
    return `<failure message="${escaped(`call ${call}, ${subject}`)}">${escaped(text)}</failure>`;
  });
  return `${start}>${failures.join('')}</testcase>\n`;
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Escapes a text. Characters that XML 1.0 does not allow become U+FFFD. */
function escaped(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u{20}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, '\u{FFFD}')
    .replaceAll(/[&<>"]/g, (character) => entities[character] ?? '');
}
