import { randomBytes } from 'node:crypto';
import { openClients } from './clients/open-clients.ts';
import { FixtureFault } from './fixtures/fixture.ts';
import { type FixtureSet, loadFixtures } from './fixtures/load-fixtures.ts';
import { startOwnGateway } from './own-gateway.ts';
import { replayFixtures } from './replay-fixtures.ts';
import { type GivenGateway, type ReplayOptions, readReplayOptions, replayUsage } from './replay-options.ts';
import { replayReport } from './replay-report.ts';

/** How the command ends: all promises kept; one broken, or no gateway; nothing sent, as a fixture or argument is at fault. */
const exitCodes = { ok: 0, differs: 1, bad: 2 } as const;

const interrupted = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => interrupted.abort(new Error('stopped')));

try {
  process.exitCode = await replay();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = exitCodes.differs;
}

async function replay(): Promise<number> {
  let run: { options: ReplayOptions; set: FixtureSet };
  try {
    run = await prepare();
  } catch (error) {
    const usage = error instanceof FixtureFault ? '' : `\n${replayUsage}`;
    process.stderr.write(`${messageOf(error)}\n${usage}`);
    return exitCodes.bad;
  }
  const { options, set } = run;
  if (options.gateway !== undefined) return replayAt(options.gateway, set);
  const own = await startOwnGateway(interrupted.signal);
  try {
    return await replayAt(own, set);
  } finally {
    await own.stop();
  }
}

/** Everything that can be at fault before anything is sent. */
async function prepare(): Promise<{ options: ReplayOptions; set: FixtureSet }> {
  const options = readReplayOptions(process.argv.slice(2), process.env);
  const set = await loadFixtures(options.fixturesFolder);
  const fixtures = set.fixtures.filter(({ file, name }) => file.includes(options.only) || name.includes(options.only));
  if (fixtures.length === 0) throw new Error(`--only: no fixture's file or name holds ${options.only}`);
  return { options, set: { ...set, fixtures } };
}

async function replayAt(gateway: GivenGateway, { fixtures, validOrder }: FixtureSet): Promise<number> {
  const clients = openClients(gateway);
  const runId = randomBytes(4).toString('hex');
  try {
    const target = { clients, merchants: gateway.merchants, validOrder, runId };
    const replays = await replayFixtures(fixtures, target, interrupted.signal);
    process.stdout.write(replayReport(replays));
    return replays.some(({ outcome }) => outcome === 'differs') ? exitCodes.differs : exitCodes.ok;
  } finally {
    for (const client of Object.values(clients)) client.close();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
