import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { createCommand } from '@order-gateway/command';
import {
  type FixtureSet,
  fixturesFolder,
  loadFixtures,
  merchantNames,
  type Protocol,
  protocols,
} from '@order-gateway/fixtures';
import type { Merchants } from '@order-gateway/fixtures/replay';
import { type GatewayAddresses, openClients } from '@order-gateway/fixtures/wire';
import { Option } from 'commander';
import {
  credentialsFromEnvironment,
  exitCodes,
  givenGateway,
  onEndSignal,
  prepareOutputs,
  runCommand,
  UsageError,
  withGatewayOptions,
  withUsageErrors,
} from '../command/command.ts';
import { junitReport } from './junit.ts';
import { type Replay, replayFixtures } from './replay-fixtures.ts';
import { replayReport } from './report.ts';

interface ReplayFlags {
  readonly http?: string;
  readonly grpc?: string;
  readonly fixtures: string;
  readonly only?: string;
  readonly protocol: readonly Protocol[];
  readonly junit?: string;
}

interface ReplayGateway extends GatewayAddresses {
  /** The base URL of its links, if known. */
  readonly baseUrl?: string;
  readonly merchants: Merchants;
}

/** Starts a gateway for the run when no address is given. */
type StartGateway = (signal: AbortSignal) => Promise<ReplayGateway & { stop(): Promise<void> }>;

/** Runs the command under this name. Without `startGateway`, it requires the addresses of a gateway. */
export async function runReplay(commandName: string, startGateway?: StartGateway): Promise<void> {
  const command = withGatewayOptions(
    createCommand(commandName, 'Sends all fixtures in every protocol and compares the responses.'),
    startGateway === undefined ? '' : undefined,
  )
    .addOption(new Option('--fixtures <dir>', 'a folder of fixtures').default(fixturesFolder, 'those of this package'))
    .option('--only <text>', 'only fixtures whose file or name contains the text')
    .addOption(new Option('--protocol <names...>', 'only these protocols').choices(protocols).default(protocols, 'all'))
    .option('--junit <file>', 'write the result as JUnit XML')
    .addHelpText(
      'after',
      `
Calls to a running gateway carry the credentials in CLIENT_ID and CLIENT_SECRET.
Some fixtures need further accounts, in variables with these prefixes, and are
skipped without them:
  SECOND_     another merchant
  STRICT_     a merchant whose checksums are required
  TEST_       a test merchant
  EXPIRING_   a merchant with a short default lifetime, for which fixtures wait
  MANAGED_    a merchant whose webhook endpoints and client secrets the fixtures
              change
  NOTIFIED_   a merchant whose webhook endpoints the fixtures change
  FULL_       a merchant with the maximum number of endpoints and secrets
  CHECKOUT_, SECOND_CHECKOUT_   checkout systems
Exit codes: 0 no difference; 1 a difference, or nothing was compared; 2 nothing
was sent; 130 interrupted.`,
    );

  const interrupted = new AbortController();
  onEndSignal(() => interrupted.abort(new Error('interrupted')));

  const run = async () => {
    const flags = command.opts<ReplayFlags>();
    const set = await withUsageErrors(() => chosenFixtures(flags));
    await prepareOutputs(flags.junit);
    const gateway = givenGateway(flags);
    if (gateway !== undefined)
      return replay({ ...gateway, merchants: givenMerchants() }, set, flags, interrupted.signal);
    if (startGateway === undefined) throw new UsageError('--http and --grpc are required');
    const startedGateway = await startGateway(interrupted.signal);
    try {
      return await replay(startedGateway, set, flags, interrupted.signal);
    } finally {
      await startedGateway.stop();
    }
  };
  await runCommand(command, run, interrupted.signal);
}

async function chosenFixtures({ fixtures: folder, only = '' }: ReplayFlags): Promise<FixtureSet> {
  const set = await loadFixtures(resolve(folder));
  const fixtures = set.fixtures.filter(({ file, name }) => file.includes(only) || name.includes(only));
  if (fixtures.length === 0) throw new Error(`--only: no fixture's file or name contains ${only}`);
  return { ...set, fixtures };
}

function givenMerchants(): Merchants {
  const first = credentialsFromEnvironment();
  if (first === undefined) throw new UsageError('set CLIENT_ID and CLIENT_SECRET to the credentials of a merchant');
  const others = merchantNames.map((name) => [name, credentialsFromEnvironment(`${name.toUpperCase()}_`)]);
  return { ...Object.fromEntries(others.filter(([, credentials]) => credentials !== undefined)), first };
}

async function replay(
  gateway: ReplayGateway,
  { fixtures, validOrder }: FixtureSet,
  { protocol, junit }: ReplayFlags,
  signal: AbortSignal,
): Promise<number> {
  const clients = openClients(gateway);
  const { merchants, baseUrl } = gateway;
  const runId = randomBytes(4).toString('hex');
  try {
    const target = { clients, baseUrl, merchants, validOrder, runId };
    const replays = await replayFixtures(fixtures, target, signal, protocol);
    if (junit !== undefined) await writeFile(junit, junitReport(replays));
    process.stdout.write(replayReport(replays));
    const hasOutcome = (expected: Replay['outcome']) => replays.some(({ outcome }) => outcome === expected);
    return hasOutcome('ok') && !hasOutcome('differs') ? exitCodes.passed : exitCodes.failed;
  } finally {
    for (const client of Object.values(clients)) client.close();
  }
}
