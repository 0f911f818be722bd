import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

// Runs a command and prints the CPU time of all its processes, by kind. CPU time hardly depends on the load of the
// machine. Linux only, because it reads /proc.

const usage =
  'Usage: pnpm test:cost COMMAND [ARGUMENT...]\n\nPrints the CPU time of a command and its processes, by kind.\n';

/** Reading all processes takes a few milliseconds. */
const sampleEveryMs = 250;

/** The kinds of processes, each with a pattern of their command lines. The first that matches counts. */
const kinds = [
  ['PostgreSQL', /postgres: |\/bin\/(?:postgres|initdb|pg_\w+|psql|pgbench)\b/],
  ['Chromium', /chrom(?:e|ium)/],
  ['tsc', /\/tsc\b|typescript/],
  ['npm, buf, knip, Biome, turbo', /\/(?:npm|npx|pnpm|buf|knip|biome|turbo)\b|tools\/turbo\.ts/],
  ['gateway and checkout processes', /src\/(?:main|workers\/worker)\.ts/],
  ['test code', /vitest/],
  ['command-line programs', /\.ts\b/],
] as const;

export function kindOf(commandLine: string): string {
  return kinds.find(([, pattern]) => pattern.test(commandLine))?.[0] ?? 'other programs';
}

/** A process as /proc shows it. Times are in seconds. */
interface Sample {
  readonly parent: number;
  readonly startedAt: string;
  /** The CPU time of the process itself. */
  readonly own: number;
  /** The CPU time of its children that have ended, and of their children. */
  readonly ofEnded: number;
}

interface Process extends Sample {
  readonly kind: string;
  /** The time of ended children that is in {@link Sample.ofEnded} less the time already counted for them. */
  readonly uncounted: number;
}

/**
 * Adds up the CPU times of the descendants of a process. Each call of `add` takes all processes of the machine. What a
 * process used after its last sample, and what a process used that is in no sample, is part of the time that its parent
 * has waited for.
 */
export function createTotals(root: number, commandLineOf: (pid: number) => string) {
  const known = new Map<number, Process>();
  const totals = new Map<string, { seconds: number; processes: number }>();
  const count = (kind: string, seconds: number, processes: number) => {
    const total = totals.get(kind) ?? { seconds: 0, processes: 0 };
    totals.set(kind, { seconds: total.seconds + seconds, processes: total.processes + processes });
  };
  const add = (samples: ReadonlyMap<number, Sample>) => {
    const ended = [...known].filter(([pid, { startedAt }]) => samples.get(pid)?.startedAt !== startedAt);
    for (const [pid] of ended) known.delete(pid);
    const endedOf = (pid: number) => ended.filter(([, { parent }]) => parent === pid);
    /** The time that is already counted for processes that have ended, and for all that their parents waited for. */
    const countedFor = (processes: typeof ended): number =>
      processes.reduce(
        (sum, [pid, { own, ofEnded, uncounted }]) => sum + own + ofEnded - uncounted + countedFor(endedOf(pid)),
        0,
      );
    // If the process numbers have wrapped around, a child is found one sample later.
    for (const [pid, sample] of samples) {
      const before = known.get(pid);
      if (before === undefined && pid !== root && !known.has(sample.parent)) continue;
      const kind = kindOf(commandLineOf(pid));
      if (pid !== root) count(kind, sample.own - (before?.own ?? 0), before === undefined ? 1 : 0);
      const children = endedOf(pid);
      const uncounted = (before?.uncounted ?? 0) + sample.ofEnded - (before?.ofEnded ?? 0) - countedFor(children);
      if (uncounted > 0) count(children.at(-1)?.[1].kind ?? kind, uncounted, 0);
      known.set(pid, { ...sample, kind, uncounted: Math.min(0, uncounted) });
    }
  };
  return { totals, add };
}

/** Reads all processes. proc(5): fields 4, 14 to 17 and 22 of /proc/PID/stat; field 2 may contain spaces. */
function readProcesses(): Map<number, Sample> {
  const samples = new Map<number, Sample>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const fields = readProc(`${name}/stat`).split(') ').at(-1)?.split(' ') ?? [];
    const ticks = (first: number) => (Number(fields[first]) + Number(fields[first + 1])) / 100;
    const [parent, startedAt = ''] = [Number(fields[1]), fields[19]];
    if (startedAt !== '') samples.set(Number(name), { parent, startedAt, own: ticks(11), ofEnded: ticks(13) });
  }
  return samples;
}

function readProc(path: string): string {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch {
    // The process has ended.
    return '';
  }
}

const [command, ...args] = process.argv.slice(2);
if (import.meta.main && (command === undefined || command.startsWith('-'))) {
  process.stdout.write(usage);
} else if (import.meta.main && command !== undefined) {
  const { totals, add } = createTotals(process.pid, (pid) => readProc(`${pid}/cmdline`).replaceAll('\0', ' '));
  const child = spawn(command, args, { stdio: 'inherit' });
  const exited = once(child, 'exit');
  while (child.exitCode === null && child.signalCode === null) {
    add(readProcesses());
    await sleep(sampleEveryMs);
  }
  add(readProcesses());
  const [code] = await exited;
  const rows = [...totals].map(([kind, total]) => ({ kind, ...total })).sort((a, b) => b.seconds - a.seconds);
  const sum = (of: 'seconds' | 'processes') => rows.reduce((total, row) => total + row[of], 0);
  for (const { kind, seconds, processes } of [
    ...rows,
    { kind: 'together', seconds: sum('seconds'), processes: sum('processes') },
  ])
    process.stdout.write(`${seconds.toFixed(1).padStart(8)} s CPU ${`${processes}`.padStart(6)} processes  ${kind}\n`);
  process.exitCode = code ?? 1;
}
