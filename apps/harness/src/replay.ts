import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { createCommand } from '@order-gateway/command';
import { type FixtureSet, fixturesFolder, loadFixtures, merchantNames } from '@order-gateway/fixtures';
import type { Merchants } from '@order-gateway/fixtures/replay';
import { type GatewayAddresses, openClients } from '@order-gateway/fixtures/wire';
import { Option } from 'commander';
import {
  credentialsFromEnvironment,
  exitCodes,
  givenGateway,
  onEndSignal,
  runCommand,
  UsageError,
  usage,
  withGatewayOptions,
} from './command/command.ts';
import { startFixtureGateway } from './gateway/own-gateway.ts';
import { type Replay, replayFixtures } from './replay/replay-fixtures.ts';
import { replayReport } from './replay/report.ts';

interface ReplayFlags {
  readonly http?: string;
  readonly grpc?: string;
  readonly fixtures: string;
  readonly only?: string;
}

const command = withGatewayOptions(
  createCommand('pnpm replay', 'Sends all fixtures in every protocol and compares the responses.'),
)
  .addOption(new Option('--fixtures <dir>', 'a folder of fixtures').default(fixturesFolder, 'packages/fixtures/data'))
  .option('--only <text>', 'only fixtures whose file or name contains the text')
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
was sent.`,
  );

const interrupted = new AbortController();
onEndSignal(() => interrupted.abort(new Error('interrupted')));

await runCommand(command, async () => {
  const flags = command.opts<ReplayFlags>();
  const set = await usage(() => chosenFixtures(flags));
  const gateway = givenGateway(flags);
  if (gateway !== undefined) return replay({ ...gateway, merchants: givenMerchants() }, set);
  const own = await startFixtureGateway(interrupted.signal);
  try {
    return await replay(own, set);
  } finally {
    await own.stop();
  }
});

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

interface ReplayGateway extends GatewayAddresses {
  /** The base URL of its links, if known. */
  readonly baseUrl?: string;
  readonly merchants: Merchants;
}

async function replay(gateway: ReplayGateway, { fixtures, validOrder }: FixtureSet): Promise<number> {
  const clients = openClients(gateway);
  const { merchants, baseUrl } = gateway;
  const runId = randomBytes(4).toString('hex');
  try {
    const target = { clients, baseUrl, merchants, validOrder, runId };
    const replays = await replayFixtures(fixtures, target, interrupted.signal);
    process.stdout.write(replayReport(replays));
    const hasOutcome = (expected: Replay['outcome']) => replays.some(({ outcome }) => outcome === expected);
    return hasOutcome('ok') && !hasOutcome('differs') ? exitCodes.passed : exitCodes.failed;
  } finally {
    for (const client of Object.values(clients)) client.close();
  }
}
