import { randomBytes } from 'node:crypto';
import { FixtureError as FixtureFault } from '@gateway/fixtures/fixture';
import { type FixtureSet, loadFixtures } from '@gateway/fixtures/load-fixtures';
import { openClients } from '@gateway/fixtures/open-clients';
import { asksForHelp, outliveReaders } from './command-line.ts';
import { reportTable } from './load/report-table.ts';
import { messageOf } from './message-of.ts';
import { startOwnGateway } from './own-gateway.ts';
import { playRecording } from './recording/play-recording.ts';
import { type RecordedRequest, readRecording } from './recording/read-recording.ts';
import { type Replay, replayFixtures } from './replay-fixtures.ts';
import {
  type GivenGateway,
  type RecordingOptions,
  type ReplayOptions,
  readReplayOptions,
  replayUsage,
} from './replay-options.ts';
import { replayReport } from './replay-report.ts';

/** How the command ends: all promises kept; one broken, or none tried; nothing sent, as a fixture or argument is at fault. */
const exitCodes = { ok: 0, differs: 1, bad: 2 } as const;

const interrupted = new AbortController();
// A terminal that is closed sends SIGHUP.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => interrupted.abort(new Error('stopped')));
}
outliveReaders();

try {
  process.exitCode = await replay();
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exitCode = exitCodes.differs;
}

async function replay(): Promise<number> {
  const args = process.argv.slice(2);
  if (asksForHelp(args)) {
    process.stdout.write(replayUsage);
    return exitCodes.ok;
  }
  let run: Prepared;
  try {
    run = await prepare(args);
  } catch (error) {
    const usage = error instanceof FixtureFault ? '' : `\n${replayUsage}`;
    process.stderr.write(`${messageOf(error)}\n${usage}`);
    return exitCodes.bad;
  }
  const { options, set, recorded } = run;
  const play = (gateway: GivenGateway) =>
    recorded === undefined ? replayAt(gateway, set) : playAt(gateway, options.recording, recorded);
  if (options.gateway !== undefined) return play(options.gateway);
  const own = await startOwnGateway(interrupted.signal);
  try {
    return await play(own);
  } finally {
    await own.stop();
  }
}

interface Prepared {
  readonly options: ReplayOptions;
  readonly set: FixtureSet;
  readonly recorded: readonly RecordedRequest[] | undefined;
}

/** Everything that can be at fault before anything is sent. */
async function prepare(args: readonly string[]): Promise<Prepared> {
  const options = readReplayOptions(args, process.env);
  const set = await loadFixtures(options.fixturesFolder);
  const fixtures = set.fixtures.filter(({ file, name }) => file.includes(options.only) || name.includes(options.only));
  if (fixtures.length === 0) throw new Error(`--only: no fixture's file or name holds ${options.only}`);
  const recorded = options.recording && (await readRecording(options.recording.file));
  return { options, set: { ...set, fixtures }, recorded };
}

async function playAt(
  { httpUrl, merchants }: GivenGateway,
  options: RecordingOptions | undefined,
  recorded: readonly RecordedRequest[],
): Promise<number> {
  if (options === undefined) throw new Error('there is no recording');
  const runId = randomBytes(4).toString('hex');
  const report = await playRecording(
    recorded,
    { ...options, httpUrl, runId, credentials: merchants.first },
    interrupted.signal,
  );
  process.stdout.write(reportTable(report));
  return report.verdict.passed && !report.interrupted ? exitCodes.ok : exitCodes.differs;
}

async function replayAt(gateway: GivenGateway, { fixtures, validOrder }: FixtureSet): Promise<number> {
  const clients = openClients(gateway);
  const runId = randomBytes(4).toString('hex');
  try {
    const { merchants, baseUrl } = gateway;
    const target = { clients, baseUrl, merchants, validOrder, runId };
    const replays = await replayFixtures(fixtures, target, interrupted.signal);
    process.stdout.write(replayReport(replays));
    const came = (to: Replay['outcome']) => replays.some(({ outcome }) => outcome === to);
    return came('ok') && !came('differs') ? exitCodes.ok : exitCodes.differs;
  } finally {
    for (const client of Object.values(clients)) client.close();
  }
}
