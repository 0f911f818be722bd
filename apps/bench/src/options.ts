import { parseArgs } from 'node:util';

export interface BenchOptions {
  readonly command: 'compare' | 'growth';
  readonly rounds: number;
  readonly seconds: number;
  readonly json: string | undefined;
  readonly chart: string | undefined;
  /** Whether the peers are installed and measured. */
  readonly peers: boolean;
  /** For growth: how many orders are there before. */
  readonly rows: readonly number[];
  /** For growth: how long memory is watched. */
  readonly memoryMinutes: number;
}

/** How to call it, for a caller who did not. */
export const benchUsage = `Usage: pnpm bench [growth] [options]
  --rounds N          interleaved rounds (5)
  --seconds S         of load in each round and contender (8)
  --no-peers          the gateway and pgbench alone, with nothing to install but wrk
  --json FILE         writes the figures
  --chart FILE        writes an SVG
  --rows A,B,C        growth: orders in the table before (0,1000000,10000000)
  --memory-minutes M  growth: how long memory is watched under load (10)
`;

/** Throws a sentence where the arguments say nothing that can be done. */
export function readOptions(args: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '8' },
      'no-peers': { type: 'boolean', default: false },
      json: { type: 'string' },
      chart: { type: 'string' },
      rows: { type: 'string', default: '0,1000000,10000000' },
      'memory-minutes': { type: 'string', default: '10' },
    },
  });
  const command = positionals[0] ?? 'compare';
  if (command !== 'compare' && command !== 'growth') throw new Error(`there is no ${command} to run`);
  return {
    command,
    rounds: whole('rounds', values.rounds, 1),
    seconds: whole('seconds', values.seconds, 1),
    json: values.json,
    chart: values.chart,
    peers: !values['no-peers'],
    rows: values.rows.split(',').map((rows) => whole('rows', rows, 0)),
    memoryMinutes: whole('memory-minutes', values['memory-minutes'], 0),
  };
}

function whole(name: string, text: string, least: number): number {
  if (!/^\d{1,9}$/.test(text) || Number(text) < least) {
    throw new Error(`--${name} must be a whole number from ${least}, and ${text} is none`);
  }
  return Number(text);
}
