import { type Contender, createMerchant, noServer, startContenders } from './contenders.ts';
import { fillTable, startDatabase } from './database.ts';
import { growthFacts } from './measure/growth-facts.ts';
import { type BenchContext, type Measured, median, type Ratio, runSection, type Section } from './measure/sections.ts';

const callers = 64;
const warmUpSecondsMax = 3;
/**
 * With one caller, each round is split into up to three runs of one second, because the speed of the disk varies from
 * second to second.
 */
const aloneTurnsMax = 3;
const aloneSeconds = 1;

const peers = {
  'gateway-json': ['pgbench', 'fastify', 'bare-http'],
  'gateway-grpc': ['pgbench', 'grpc-js', 'bare-http2'],
};
const gateways = Object.keys(peers);
const bare = {
  'gateway-json': 'bare-http',
  'gateway-grpc': 'bare-http2',
  'libraries-json': 'bare-http',
  'libraries-grpc': 'bare-http2',
};

const toPeers = Object.entries(peers).flatMap(([of, peerNames]) =>
  peerNames.map((to): Ratio => ({ metric: 'ordersPerSecond', of, to })),
);
const toBare = (metric: Ratio['metric']) => Object.entries(bare).map(([of, to]): Ratio => ({ metric, of, to }));
const toInsert = gateways.map((of): Ratio => ({ metric: 'p50Ms', of, to: 'insert' }));

/**
 * Compares the gateway with its peers under three loads: 64 callers, one caller, and a fixed rate of half the gateway's
 * gRPC peak. Returns the measurements of each load that has contenders.
 */
export async function compare(context: BenchContext): Promise<Measured[]> {
  const { rounds, seconds, only, progress } = context;
  await using cleanup = new AsyncDisposableStack();
  progress('starting PostgreSQL and the contenders');
  const { url } = await startDatabase(cleanup, 3 * rounds * seconds * only.length);
  const contenders = await startContenders(cleanup, url, only);
  await warmUp(contenders, context);
  const full = { rounds, seconds, concurrency: callers };
  const peak = {
    ...full,
    title: '64 callers',
    ratios: [...toPeers, ...toBare('cpuMicroseconds'), ...toBare('allocatedBytes')],
  };
  const measured = [await runSection(peak, contenders, context)];

  const lone = contenders.filter(({ name }) => Object.entries(bare).flat().includes(name));
  if (lone[0] !== undefined) {
    const insert: Contender = { ...lone[0], name: 'insert', protocol: 'insert', ...noServer };
    const turns = rounds * Math.min(aloneTurnsMax, Math.ceil(seconds / aloneTurnsMax));
    const ratios = [...toBare('p50Ms'), ...toInsert];
    const alone = { title: 'one caller', rounds: turns, seconds: aloneSeconds, concurrency: 1, ratios };
    measured.push(await runSection(alone, [...lone, insert], context));
  }

  const grpcRuns = measured[0]?.runs['gateway-grpc'];
  if (grpcRuns !== undefined) {
    const rate = Math.round(median(grpcRuns.map(({ ordersPerSecond }) => ordersPerSecond)) / 2);
    const half = { ...full, rate, title: `${rate} gRPC calls/s, half of the gateway's peak`, ratios: toBare('p99Ms') };
    const steady = contenders.filter(({ name }) => name === 'gateway-grpc' || name === 'bare-http2');
    measured.push(await runSection(half, steady, context));
  }
  return measured;
}

/** Compares the gateway on an empty table with the gateway on a table that has `rows` orders. */
export async function compareGrowth(context: BenchContext, rows: number): Promise<Measured[]> {
  const { rounds, seconds, only, signal, progress } = context;
  const names = gateways.filter((name) => only.includes(name));
  if (names.length === 0) throw new Error('--growth compares gateway-json and gateway-grpc; --only names neither.');
  await using cleanup = new AsyncDisposableStack();
  progress('starting PostgreSQL and the contenders');
  const server = await startDatabase(cleanup, 2 * rounds * seconds * names.length);
  const empty = await startContenders(cleanup, server.url, names);
  const { url: grownUrl } = await server.createDatabase();
  progress(`filling a table with ${rows} orders`);
  const merchantId = (await createMerchant(grownUrl)).id;
  await fillTable(grownUrl, merchantId, rows, signal);
  const table = { url: grownUrl, dataDir: server.dataDir, merchantId, rows };
  for await (const fact of growthFacts(table)) progress(fact);
  const grownName = (name: string) => `${name} on ${rows} orders`;
  const grown = (await startContenders(cleanup, grownUrl, names)).map((contender) => ({
    ...contender,
    name: grownName(contender.name),
  }));
  const contenders = [...empty, ...grown];
  await warmUp(contenders, context);
  const ratios = names.map((name): Ratio => ({ metric: 'ordersPerSecond', of: grownName(name), to: name }));
  const section: Section = { title: 'growth', rounds, seconds, concurrency: callers, ratios };
  return [await runSection(section, contenders, context)];
}

/**
 * Loads all contenders before they are measured, so that their code is compiled. Runs of one second have no warm-up.
 */
async function warmUp(contenders: readonly Contender[], context: BenchContext): Promise<void> {
  const seconds = Math.min(warmUpSecondsMax, Math.floor(context.seconds / 2));
  const section = { title: 'warm-up', rounds: 1, seconds, concurrency: callers, ratios: [] };
  if (seconds > 0) await runSection(section, contenders, context);
}
