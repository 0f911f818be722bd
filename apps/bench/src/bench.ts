import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCommand } from '@order-gateway/command';
import { InvalidArgumentError, Option } from 'commander';
import { compare, compareGrowth } from './compare.ts';
import { contenderNames, programOf } from './contenders.ts';
import { reportOf } from './measure/report.ts';
import { isInstalled } from './programs.ts';

// A program that measures the gateway and its peers on a separate database. `pnpm bench --help` lists the options.

const options = createCommand(
  'bench',
  'Compares the gateway with other services, bare servers and pgbench, on a separate PostgreSQL.',
)
  .option('--rounds <number>', 'interleaved rounds', positiveInteger, 5)
  .option('--seconds <number>', 'seconds of load for each contender and round', positiveInteger, 8)
  .addOption(
    new Option('--only <names>', `contenders, separated by commas: ${contenderNames.join(', ')}`)
      .argParser(contenderList)
      .default(contenderNames, 'all'),
  )
  .option('--growth <rows>', 'compare only the gateway, on an empty table and on a filled one', positiveInteger)
  .addHelpText(
    'after',
    `
Programs: wrk for the contenders over JSON, and pgbench. Contenders whose
program is missing are skipped.
Exit codes: 0 success; 1 failure or interruption; 2 an argument is invalid.`,
  )
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
  .parse()
  .opts<{ rounds: number; seconds: number; only: readonly string[]; growth?: number }>();

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => interrupted.abort());

try {
  const startedAt = new Date().toISOString();
  const machine = `${cpus().length} x ${cpus()[0]?.model.trim() || 'CPU'}, Node.js ${process.version}`;
  const { only, growth, ...limits } = options;
  const missing = new Set<string | undefined>();
  for (const program of ['pgbench', 'wrk']) {
    if (await isInstalled(program)) continue;
    missing.add(program);
    progress(`SKIPPED: ${program} is not installed.`);
  }
  const chosen = only.filter((name) => !missing.has(programOf(name)));
  const context = { ...limits, only: chosen, signal: interrupted.signal, progress };
  const measured = growth === undefined ? await compare(context) : await compareGrowth(context, growth);
  process.stdout.write(`\n${startedAt}, ${machine}, JSON by wrk, gRPC by node:http2\n\n`);
  process.stdout.write(`${measured.map(reportOf).join('\n\n')}\n`);
  const folder = join(tmpdir(), 'order-gateway-bench');
  await mkdir(folder, { recursive: true });
  const file = join(folder, `${startedAt.replaceAll(':', '-')}.json`);
  const figures = { startedAt, machine, ...options, sections: measured };
  await writeFile(file, `${JSON.stringify(figures, undefined, 2)}\n`);
  progress(`\nAll figures: ${file}`);
} catch (error) {
  const reason = interrupted.signal.aborted ? 'Stopped.' : error instanceof Error ? error.message : String(error);
  process.stderr.write(`${reason}\n`);
  process.exitCode = 1;
}

function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}

function positiveInteger(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number above 0.');
  return Number(text);
}

function contenderList(text: string): string[] {
  const chosen = text.split(',').map((name) => name.trim());
  const unknown = chosen.filter((name) => !contenderNames.includes(name));
  if (unknown.length > 0)
    throw new InvalidArgumentError(
      `Unknown contenders: ${unknown.join(', ')}. The contenders are ${contenderNames.join(', ')}.`,
    );
  return chosen;
}
