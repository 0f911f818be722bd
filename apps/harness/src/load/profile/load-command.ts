import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { createCommand } from '@order-gateway/command';
import type { Credentials } from '@order-gateway/domain/accounts';
import { type Command, Option } from 'commander';
import { z } from 'zod';
import {
  credentialsFromEnvironment,
  parseNumber,
  parseSeconds,
  parseWhole,
  withGatewayOptions,
} from '../../command/command.ts';
import {
  arrivalsOf,
  constantRate,
  type LoadSettings,
  listProfiles,
  loadProfile,
  modes,
  type Phase,
  type Profile,
  parseProfile,
  protocolChoices,
  shares,
} from './profile.ts';

/**
 * The values of options, as Commander names them. Options that are not listed here only replace members of the profile.
 */
export interface LoadFlags {
  readonly profile?: string;
  readonly mode?: Profile['mode'];
  readonly rate?: number;
  readonly rampTo?: number;
  readonly duration?: number;
  readonly seed?: number;
  readonly audit?: true;
  readonly journal?: string;
  readonly json?: string;
  readonly html?: string;
  readonly http?: string;
  readonly grpc?: string;
  readonly credentials?: string;
  readonly compare?: readonly string[];
}

export function loadCommand(): Command {
  const command = createCommand(
    'load',
    'Sends orders to a gateway at a given rate, measures the responses, and compares them with thresholds.',
  )
    .allowExcessArguments()
    .action((_flags, { args: [excess] }) => {
      if (excess !== undefined)
        command.error(`error: unknown argument '${excess}'\n(Did you mean --profile ${excess}?)`);
    })
    .option('--profile <name|file>', 'the load and its thresholds: a profile below, or a JSON file')
    .addOption(
      new Option('--mode <mode>', 'open: calls follow a schedule; closed: each follows the previous response').choices(
        modes,
      ),
    )
    .addOption(
      new Option('--protocol <protocol>', 'the protocol; mixed: a random one for each call').choices(protocolChoices),
    )
    .option('--rate <n>', 'calls per second (default: 100)', parseNumber)
    .option('--ramp-to <n>', 'calls per second at the end, reached linearly', parseNumber)
    .option('--duration <time>', 'the duration, such as 30s, 2m or 1h (default: 10s)', parseSeconds)
    .option(
      '--connections <n>',
      'connections for each protocol; in closed mode also clients (default: 16)',
      parseNumber,
    )
    .option('--max-pending <n>', 'drop scheduled calls while N have no response (default: 1000)', parseNumber)
    .option('--merchants <n>', 'spread the orders over N merchants (default: 1)', parseNumber);
  for (const [, name, description] of shares) {
    command.option(
      `--${name.replace('_', '-')} <n>`,
      `the share of calls that ${description}, 0 to 1 (default: 0)`,
      parseNumber,
    );
  }
  command
    .option('--metadata-share <n>', 'the share of orders with metadata, 0 to 1 (default: 0)', parseNumber)
    .option('--seed <n>', 'repeat the calls of the run that reported this seed (default: random)', parseWhole)
    .option('--audit', 'compare every acknowledged order with the database at the end')
    .option('--journal <file>', 'store the calls and responses for `audit-orders`')
    .option('--json <file>', 'write the report as JSON, second by second')
    .option('--html <file>', 'write the report as a page with charts')
    .option('--compare <file...>', 'send nothing: show two reports of --json side by side');
  return withGatewayOptions(command)
    .option(
      '--credentials <file>',
      'merchants of the running gateway, one line each as `merchant create --json` prints them',
    )
    .addHelpText(
      'after',
      `
Profiles:
${listProfiles()}

Options override the profile. Calls to a running gateway carry the credentials
of --credentials, or of CLIENT_ID and CLIENT_SECRET. Payments carry those of a
checkout system in CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET, which must
make refunds if orders are refunded.
Exit codes: 0 all thresholds met; 1 a threshold missed, or the run failed; 2
nothing was sent; 130 interrupted.`,
    );
}

/** Returns the settings of a run from its options. Throws an Error that names what is invalid. */
export function settingsFrom(flags: LoadFlags): LoadSettings & { readonly audit: boolean } {
  const base =
    flags.profile === undefined ? parseProfile({ phases: constantRate(100, 10) }) : loadProfile(flags.profile);
  const named = Object.entries(flags).map(([name, value]) => [snakeCase(name), value] as const);
  const changes = Object.fromEntries(named.filter(([name]) => name in base));
  const settings = parseProfile({ ...base, ...changes, phases: phasesFrom(flags, base) });
  const audit = flags.audit === true || settings.thresholds.lost !== undefined;
  return {
    ...settings,
    // If the profile has no threshold `lost`, an audit still allows no loss.
    thresholds: audit ? { lost: 0, ...settings.thresholds } : settings.thresholds,
    profile: flags.profile === undefined ? 'none' : basename(flags.profile, '.json'),
    seed: flags.seed ?? randomInt(2 ** 32),
    audit,
  };
}

/** Commander's `maxPending` is `max_pending` in a profile. */
function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function phasesFrom({ rate, rampTo, duration, mode }: LoadFlags, base: Profile): readonly Phase[] {
  if (rate === undefined && rampTo === undefined && duration === undefined) return base.phases;
  const rates = new Set(base.phases.flatMap((phase) => [phase.rate, phase.to]));
  if (rate === undefined && rates.size > 1 && (mode ?? base.mode) === 'open') {
    throw new Error('--rate must be given too, because the profile has more than one rate');
  }
  const [firstRate = 0] = rates;
  const seconds = duration ?? arrivalsOf(base.phases).seconds;
  return [{ seconds, rate: rate ?? firstRate, to: rampTo ?? rate ?? firstRate }];
}

const lineSchema = z.object({ client_id: z.string(), client_secret: z.string() });

/**
 * Reads credentials for a running gateway: from a file with one JSON object per line, as `merchant create --json`
 * prints it, or those of one merchant from the environment. Throws if there are too few.
 */
export function givenCredentials(file: string | undefined, merchants: number): Credentials[] {
  const given = file === undefined ? [credentialsFromEnvironment() ?? []].flat() : readCredentials(file);
  if (given.length < merchants) {
    const source = file ?? 'CLIENT_ID and CLIENT_SECRET';
    throw new Error(`the run needs credentials of ${merchants} merchants, but found ${given.length} in ${source}`);
  }
  return given.slice(0, merchants);
}

function readCredentials(file: string): Credentials[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.flatMap((line, index) => {
    if (line.trim() === '') return [];
    try {
      const { client_id: clientId, client_secret: clientSecret } = lineSchema.parse(JSON.parse(line));
      return [{ clientId, clientSecret }];
    } catch {
      throw new Error(`${file}, line ${index + 1}: must be an object with client_id and client_secret`);
    }
  });
}
