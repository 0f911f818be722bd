import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { createCommand } from '@order-gateway/command';
import { type AuditResult, auditErrors } from './audit/audit.ts';
import { exitCodes, parseNumber, parseWhole, prepareOutputs, runCommand, UsageError } from './command/command.ts';
import { formatMs, formatSeconds } from './command/text.ts';
import type { Environment } from './load/report/report.ts';
import { htmlPage, sectionOf, verdictOf } from './load/report/report-page.ts';
import { environmentRows } from './load/report/report-text.ts';

/** The result of one kind of fault. The fault tests write an array of them into the file that FAULTS_RESULT names. */
export interface FaultResult {
  readonly name: string;
  readonly environment: Environment;
  /**
   * Seconds from the end of each fault until both gateways had created an order. For a fault that lasts as long as a
   * connection, the time is measured from its start.
   */
  readonly recoveries: readonly number[];
  readonly calls: number;
  /** Calls that took more than 250 ms longer than the gateway's deadline, with or without a response. */
  readonly late: number;
  /** How many calls had each outcome that this fault must not cause. */
  readonly wrong: Readonly<Record<string, number>>;
  readonly audit: AuditResult;
}

/** A line of `pnpm drill`. */
interface DrillResult {
  readonly topology: string;
  readonly fault: string;
  readonly first_order_ms: number | null;
  readonly acknowledged: number;
  readonly lost: number;
  readonly duplicated: number;
  readonly changed: number;
  readonly unexplained: number;
}

interface Flags {
  readonly seed?: number;
  readonly percent: number;
  readonly fault?: string;
  readonly rounds: number;
  readonly topologies: readonly string[];
  readonly markdown?: string;
  readonly html?: string;
}

const harness = join(import.meta.dirname, '..');
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs');

const command = createCommand(
  'reliability',
  'Injects faults into gateways and PostgreSQL under load, fails over to a standby, and reports the audits of all orders.',
)
  .option('--seed <n>', 'repeat the calls and faults of the run that reported this seed', parseWhole)
  .option('--percent <n>', 'inject this share of the faults', parseNumber, 100)
  .option('--fault <text>', 'only the faults with this text in their name')
  .option('--rounds <n>', 'the failovers for each topology and fault of a primary', parseWhole, 1)
  .option('--topologies <names...>', 'the topologies of the failovers, which `drill` lists', ['direct'])
  .option('--markdown <file>', 'write the report as Markdown')
  .option('--html <file>', 'write the report as a page')
  .addHelpText(
    'after',
    `
A complete run takes half an hour. Programs: openssl, and PostgreSQL with
pg_basebackup for the failovers.
Exit codes: 0 every order was as acknowledged, and the gateways recovered in
time; 1 otherwise, or after a failure; 2 an argument is invalid; 130
interrupted.`,
  );

await runCommand(command, async () => {
  const { seed = randomInt(2 ** 32), percent, fault = '', rounds, topologies, markdown, html } = command.opts<Flags>();
  if (markdown === undefined && html === undefined) throw new UsageError('--markdown or --html is missing');
  await prepareOutputs(markdown, html);
  const startedAt = new Date();
  await using folder = await mkdtempDisposable(join(tmpdir(), 'reliability-'));
  const resultFile = join(folder.path, 'faults.json');
  const args = ['run', '--mode', 'faults', 'test/faults/each-fault', '-t', `^[^:]*${RegExp.escape(fault)}[^:]*:`];
  const variables = { FAULTS_SEED: String(seed), FAULTS_PERCENT: String(percent), FAULTS_RESULT: resultFile };
  const tested = await run(vitest, args, variables);
  const faults: FaultResult[] = JSON.parse(await readFile(resultFile, 'utf8').catch(() => '[]'));
  const drilled: Awaited<ReturnType<typeof run>>[] = [];
  for (const topology of rounds > 0 ? topologies : []) {
    const options = ['--topology', topology, '--rounds', String(rounds), '--seed', String(seed)];
    drilled.push(await run(join(import.meta.dirname, 'drill.ts'), options));
  }
  const drills = drilled.flatMap(({ stdout }) => stdout.split('\n').filter((line) => line.startsWith('{')));

  const hasPassed = tested.hasPassed && faults.length > 0 && drilled.every((drill) => drill.hasPassed);
  const title = `Reliability, ${startedAt.toISOString().slice(0, 10)}, seed ${seed}, ${percent} % of the faults`;
  const tables = [
    ...faults.slice(0, 1).map(environmentRows),
    faultRows(faults),
    ...(faults.some(({ wrong }) => Object.keys(wrong).length > 0) ? [wrongRows(faults)] : []),
    ...(drills.length > 0 ? [drillRows(drills.map((line) => JSON.parse(line)))] : []),
  ];
  const page = htmlPage(title, [verdictOf(hasPassed), ...tables.map((rows) => sectionOf({ rows }))]);
  const document = [`# ${title}: ${hasPassed ? 'passed' : 'failed'}`, ...tables.map(markdownOf)].join('\n\n');
  if (html !== undefined) await writeFile(html, page);
  if (markdown !== undefined) await writeFile(markdown, `${document}\n`);
  return hasPassed ? exitCodes.passed : exitCodes.failed;
});

/**
 * Runs a Node.js program in the harness, and copies its output to standard error. Returns the output and the result.
 */
async function run(program: string, args: readonly string[], variables: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [program, ...args], {
    cwd: harness,
    env: { ...process.env, ...variables },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.pipe(process.stderr, { end: false });
  const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  return { stdout, hasPassed: code === 0 };
}

function faultRows(results: readonly FaultResult[]): string[][] {
  const rows = results.map(({ name, recoveries, calls, late, audit }) => {
    const sorted = recoveries.toSorted((a, b) => a - b);
    const [median = 0, slowest = 0] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
    const times = [formatSeconds(median), formatSeconds(slowest)];
    return [
      name,
      String(recoveries.length),
      ...times,
      ...[calls, late, audit.acknowledged, auditErrors(audit)].map(String),
    ];
  });
  const heading = ['fault', 'times', 'first order, median', 'slowest', 'calls', 'late', 'acknowledged', 'audit errors'];
  return [heading, ...rows];
}

/** Lists the outcomes for which a run failed although all orders were as acknowledged. */
function wrongRows(results: readonly FaultResult[]): string[][] {
  const rows = results.flatMap(({ name, wrong }) =>
    Object.entries(wrong).map(([outcome, calls]) => [name, outcome, String(calls)]),
  );
  return [['fault', 'wrong outcome', 'calls'], ...rows];
}

function drillRows(results: readonly DrillResult[]): string[][] {
  const rows = results.map(
    ({ topology, fault, first_order_ms, acknowledged, lost, duplicated, changed, unexplained }) => [
      ...[topology, fault, formatMs(first_order_ms ?? undefined), String(acknowledged)],
      String(lost + duplicated + changed + unexplained),
    ],
  );
  return [
    ['topology', 'fault of the primary', 'first order after the promotion', 'acknowledged', 'audit errors'],
    ...rows,
  ];
}

function markdownOf([heading = [], ...rows]: readonly string[][]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(heading), line(heading.map(() => '---')), ...rows.map(line)].join('\n');
}
