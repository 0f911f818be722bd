import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { endProcesses, newDataDir, startProcess } from '../test/gateway-process.ts';
import { fuzz } from './fuzz.ts';

// Sends a long run of mutated inputs to a gateway process of its own: `pnpm test:fuzz [--seed N] [--count N] [--first N]`. Exits
// with 1 where an input got no answer or a fault, where the process ended, or where its memory grew.

/** Memory may grow by this much after the first third of the run: heap that is not collected yet, and buffers. */
const growthMaxMiB = 96;

const { values } = parseArgs({
  options: { seed: { type: 'string' }, count: { type: 'string' }, first: { type: 'string' } },
});
const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000));
const count = Number(values.count ?? 100_000);
const first = Number(values.first ?? 0);

const gateway = await startProcess(await newDataDir());
const memory: number[] = [];
const startedAt = performance.now();
process.stdout.write(`seed ${seed}, ${count} inputs\n`);
const report = await fuzz(
  {
    httpPort: Number(new URL(gateway.url).port),
    grpcPort: Number(new URL(gateway.grpcUrl).port),
    credentials: await gateway.credentials(),
  },
  {
    ...{ seed, count, first },
    onProgress(sent) {
      memory.push(residentMiB(gateway.child.pid));
      process.stdout.write(`${sent} sent, the gateway holds ${memory.at(-1)} MiB\n`);
    },
  },
);
const ended = gateway.child.exitCode !== null || gateway.child.signalCode !== null;
const growth = Math.max(...memory.slice(-3)) - Math.max(...memory.slice(0, Math.ceil(memory.length / 3)));
for (const { number, answer } of report.bad.slice(0, 20)) {
  process.stdout.write(`input ${number}: ${answer}; repeat it with --seed ${seed} --first ${number} --count 1\n`);
}
process.stdout.write(`${JSON.stringify(report.answers)}\n`);
const seconds = Math.round((performance.now() - startedAt) / 1_000);
const grown = memory.length > 1 ? `${growth} MiB grown` : 'too short to tell how memory grows';
process.stdout.write(
  `${report.bad.length} bad answers, process ${ended ? 'ended' : 'alive'}, ${grown}, ${seconds} s\n`,
);
await endProcesses();
process.exit(report.bad.length > 0 || ended || growth > growthMaxMiB ? 1 : 0);

function residentMiB(pid: number | undefined): number {
  const kib = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Math.round(Number(kib) / 1_024);
}
