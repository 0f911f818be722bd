import { isClientId, liveSecretsMax } from '@gateway/domain/credentials';
import { textError } from '@gateway/domain/field-rules';
import { type ChecksumMode, checksumModes, merchantNameRule } from '@gateway/domain/merchant';
import { lifetimeMs } from '@gateway/domain/order-expiry';
import type { MerchantAccounts } from '@gateway/postgres/merchant-admin';
import { Argument, Command, Option } from 'commander';
import { parseRate } from '../config.ts';
import { StartError } from '../process.ts';
import type { OpenAccounts } from './with-accounts.ts';

/** Rows of a list read from the database at once. */
export const listPage = 500;

export const jsonHelp = 'print JSON, one object a line';
export const clientIdHelp = "the merchant's client id, as `merchant list` shows it";
export const timeForm = 'an ISO 8601 time with an offset, such as 2027-01-31T12:00:00Z';
const secretNote = "The secret is shown only now. Store it where only the client's backend can read it.";

/** Who acts, by the option `--as` of a program; `undefined` without it. */
export function actorOf(program: Command): string | undefined {
  return program.opts<{ as?: string }>().as;
}

/** The option `--as` of a command that is recorded in the audit log. */
export function actorOption(): Option {
  return new Option('--as <NAME>', 'who acts, for the audit log (default: user@host)').argParser(parseName('--as'));
}

export function clientCommand(parent: Command, name: string): Command {
  return parent.command(name).argument('<CLIENT_ID>', clientIdHelp, parseClientId);
}

/** Returns what changes a setting of a client, and prints what is true of it then. */
export function settingOf(program: Command, openAccounts: OpenAccounts, print: (line: string) => void) {
  return (clientId: string, set: (accounts: MerchantAccounts) => Promise<string>, sentence: string) =>
    openAccounts(async (accounts) => {
      if ((await set(accounts)) === 'unknown_client') throw unknownClient(clientId);
      print(sentence);
    }, actorOf(program));
}

/** A program whose commands are recorded in the audit log. */
function recordedProgram(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .addOption(actorOption())
    .configureHelp({ showGlobalOptions: true })
    .showHelpAfterError()
    .configureOutput({
      // Someone may have typed a secret by mistake.
      outputError: (text, write) => write(text.replaceAll(/\b(sk|whsec)_[\w+/=]+/g, '$1_...')),
    });
}

/**
 * The commands of `pnpm merchant`. None takes a secret, because every user of the machine can see arguments. Wrong arguments end
 * the process with exit code 1 or reject with a {@link StartError}, before the database is opened.
 */
export function merchantCommands(openAccounts: OpenAccounts, print: (line: string) => void): Command {
  const program = recordedProgram('pnpm merchant', 'Creates merchants and manages their client secrets.');
  const withAccounts = (work: (accounts: MerchantAccounts) => Promise<void>) => openAccounts(work, actorOf(program));
  const set = settingOf(program, openAccounts, print);

  program
    .command('create')
    .description('Creates a merchant with its first client id and secret.')
    .requiredOption(
      '--name <NAME>',
      `shown to customers, 1 to ${merchantNameRule.lengthMax} characters`,
      parseName('--name'),
    )
    .option('--test', 'for trying out: the orders move no money; this can never be changed')
    .option('--json', jsonHelp)
    .action(({ name, test, json }: { name: string; test?: true; json?: true }) =>
      withAccounts(async (accounts) => {
        const mode = test ? 'test' : 'live';
        const { clientId, clientSecret } = await accounts.create(name, mode);
        if (json) return print(JSON.stringify({ name, mode, client_id: clientId, client_secret: clientSecret }));
        print(`Created ${mode} merchant ${name}\n${credentialLines(clientId, clientSecret)}`);
      }),
    );

  program
    .command('list')
    .description('Lists all merchants, the oldest first.')
    .option('--json', jsonHelp)
    .action(({ json }: { json?: true }) =>
      withAccounts(async (accounts) => {
        const columns = { 'CLIENT ID': 33, KIND: 8, STATE: 8, CHECKSUM: 9, 'LIVE SECRETS': 12, CREATED: 23, NAME: 0 };
        const printRow = startList(columns, json, print);
        let page = await accounts.list({ limit: listPage });
        while (page.length > 0) {
          for (const { clientId, name, checksumMode, liveSecrets, createdAt, disabledAt, ...others } of page) {
            const kind = others.kind === 'merchant' ? others.mode : others.kind;
            const state = disabledAt === null ? 'enabled' : 'disabled';
            const facts = {
              ...{ client_id: clientId, name, kind, checksum_mode: checksumMode, live_secrets: liveSecrets },
              default_lifetime_seconds: others.defaultLifetimeSeconds,
              rate_limit: others.rateLimit,
              ...{ created_at: createdAt, disabled_at: disabledAt },
            };
            printRow(facts, clientId, kind, state, checksumMode, `${liveSecrets}`, readable(createdAt), name);
          }
          page = await accounts.list({ limit: listPage, afterClientId: page.at(-1)?.clientId ?? '' });
        }
      }),
    );

  program
    .command('checksum')
    .description("Sets how the merchant's order checksums are verified.")
    .addArgument(
      new Argument(
        '<MODE>',
        'versioned: one that begins with v1= must be right; required: every order needs one',
      ).choices(checksumModes),
    )
    .argument('<CLIENT_ID>', clientIdHelp, parseClientId)
    .action((mode: ChecksumMode, clientId: string) =>
      set(
        clientId,
        (accounts) => accounts.setChecksumMode(clientId, mode),
        `Order checksums of ${clientId} are now ${mode}.`,
      ),
    );

  clientCommand(program, 'lifetime')
    .description('Sets after what time an order expires that is sent without order_expires_at.')
    .argument('<LIFETIME>', '1m to 366d, such as 30m, 24h or 7d, or none', parseLifetime)
    .action((clientId: string, seconds: number | null) => {
      const rule = seconds === null ? 'do not expire' : `expire after ${seconds} seconds`;
      const sentence = `Orders of ${clientId} without order_expires_at now ${rule}.`;
      return set(clientId, (accounts) => accounts.setDefaultLifetime(clientId, seconds), sentence);
    });

  clientCommand(program, 'limit')
    .description('Sets how many calls a second each process of the gateway takes from the merchant.')
    .argument('<NUMBER>', '1 to 1000000, or none: RATE_LIMIT applies', parseLimit)
    .action((clientId: string, limit: number | null) => {
      const rule = limit === null ? 'has no rate limit of its own' : `may make ${limit} calls a second`;
      return set(clientId, (accounts) => accounts.setRateLimit(clientId, limit), `${clientId} now ${rule}.`);
    });

  const secret = program.command('secret').description("Adds, lists and revokes a merchant's client secrets.");

  clientCommand(secret, 'add')
    .description(`Adds a client secret, which works at once. Up to ${liveSecretsMax} can work at the same time.`)
    .option('--ends <TIME>', `when the secret stops working: ${timeForm} (default: never)`, parseEnd)
    .option('--json', jsonHelp)
    .action((clientId: string, { ends, json }: { ends?: Date; json?: true }) =>
      withAccounts(async (accounts) => {
        const added = await accounts.addSecret(clientId, ends ?? null);
        if (added.kind === 'unknown_client') throw unknownClient(clientId);
        if (added.kind === 'too_many')
          throw new StartError(
            `${clientId} has ${liveSecretsMax} secrets that work, which is the limit. Revoke one first.`,
          );
        const { id, clientSecret } = added;
        if (json) return print(JSON.stringify({ client_id: clientId, number: id, client_secret: clientSecret }));
        print(`Added secret ${id} of ${clientId}\n  client secret: ${clientSecret}\n${secretNote}`);
      }),
    );

  clientCommand(secret, 'list')
    .description('Lists the client secrets by number. The secrets themselves are not stored.')
    .option('--json', jsonHelp)
    .action((clientId: string, { json }: { json?: true }) =>
      withAccounts(async (accounts) => {
        const secrets = await accounts.listSecrets(clientId);
        if (secrets === undefined) throw unknownClient(clientId);
        const printRow = startList({ NUMBER: 6, CREATED: 23, STATE: 0 }, json, print);
        for (const { id, createdAt, endsAt } of secrets) {
          const state =
            endsAt === null
              ? 'works'
              : `${endsAt.getTime() > Date.now() ? 'works until' : 'ended'} ${readable(endsAt)}`;
          printRow({ number: id, created_at: createdAt, ends_at: endsAt }, `${id}`, readable(createdAt), state);
        }
      }),
    );

  clientCommand(secret, 'revoke')
    .description('Revokes a client secret in every process within a second, or at a time.')
    .argument('<NUMBER>', "the secret's number, as `merchant secret list` shows it", parseNumber)
    .option('--ends <TIME>', `when the secret stops working: ${timeForm} (default: now)`, parseEnd)
    .action((clientId: string, number: number, { ends }: { ends?: Date }) =>
      withAccounts(async (accounts) => {
        const ended = await accounts.endSecret(clientId, number, ends ?? null);
        if (ended.kind === 'unknown_secret') throw new StartError(`${clientId} has no secret ${number}.`);
        if (ended.kind === 'ended_already') throw new StartError(`Secret ${number} of ${clientId} has already ended.`);
        const when = ends === undefined ? 'now' : `at ${readable(ended.at)}`;
        print(`Secret ${number} of ${clientId} ends ${when}.`);
      }),
    );

  return program;
}

/** The commands of `pnpm checkout`. A checkout system's secrets are managed with `pnpm merchant secret`. */
export function checkoutCommands(openAccounts: OpenAccounts, print: (line: string) => void): Command {
  const program = recordedProgram(
    'pnpm checkout',
    'Creates the clients of checkout systems, which record the payments of all merchants.',
  );
  program
    .command('create')
    .description('Creates a checkout client with its first client id and secret.')
    .requiredOption(
      '--name <NAME>',
      `for the operator, 1 to ${merchantNameRule.lengthMax} characters`,
      parseName('--name'),
    )
    .option('--json', jsonHelp)
    .action(({ name, json }: { name: string; json?: true }) =>
      openAccounts(async (accounts) => {
        const { clientId, clientSecret } = await accounts.create(name, 'checkout');
        if (json) return print(JSON.stringify({ name, client_id: clientId, client_secret: clientSecret }));
        print(`Created checkout client ${name}\n${credentialLines(clientId, clientSecret)}`);
      }, actorOf(program)),
    );
  return program;
}

function credentialLines(clientId: string, clientSecret: string): string {
  return `  client id:     ${clientId}\n  client secret: ${clientSecret}\n${secretNote}`;
}

/** Starts a list: of columns with these names and widths, or with `json` of one object a line. Returns what prints a row. */
export function startList(
  columns: Readonly<Record<string, number>>,
  json: boolean | undefined,
  print: (line: string) => void,
): (facts: object, ...cells: readonly string[]) => void {
  const widths = Object.values(columns);
  const row = (cells: readonly string[]) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  if (!json) print(row(Object.keys(columns)));
  return (facts, ...cells) => print(json ? JSON.stringify(facts) : row(cells));
}

/** A time to the second, as `2027-01-31 12:00:00 UTC`. */
export function readable(time: Date): string {
  return `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

export function unknownClient(clientId: string): StartError {
  return new StartError(`There is no client ${clientId}.`);
}

/** Checks the name of a client or of who acts. */
export function parseName(option: '--name' | '--as'): (text: string) => string {
  return (text) => {
    const error = textError(merchantNameRule, text);
    if (error !== undefined) throw new StartError(`${option} ${error.message}.`);
    return text;
  };
}

// Commander would repeat a wrong argument in its message, which may be a secret.

/** Checks a client id on the command line. */
export function parseClientId(text: string): string {
  if (!isClientId(text)) throw new StartError('CLIENT_ID must be a client id shown by `merchant list`.');
  return text;
}

function parseNumber(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text))
    throw new StartError('NUMBER must be a secret number shown by `merchant secret list`.');
  return Number(text);
}

function parseLifetime(text: string): number | null {
  if (text === 'none') return null;
  const [, count, unit] = /^([1-9]\d{0,6})([mhd])$/.exec(text) ?? [];
  const seconds = Number(count) * { m: 60, h: 3_600, d: 86_400 }[unit as 'm' | 'h' | 'd'];
  if (unit !== undefined && seconds * 1_000 <= lifetimeMs.max) return seconds;
  throw new StartError('LIFETIME must be 1m to 366d, such as 30m, 24h or 7d, or none.');
}

function parseLimit(text: string): number | null {
  const limit = text === 'none' ? null : parseRate(text);
  if (limit === undefined) throw new StartError('NUMBER must be a whole number from 1 to 1000000, or none.');
  return limit;
}

function parseEnd(text: string): Date {
  const end = parseTime('--ends')(text);
  if (end.getTime() > Date.now()) return end;
  throw new StartError('--ends must be in the future.');
}

export function parseTime(option: string): (text: string) => Date {
  return (text) => {
    try {
      // Unlike Date, it rejects 30 February and a time without an offset.
      return new Date(Temporal.Instant.from(text).epochMilliseconds);
    } catch {
      throw new StartError(`${option} must be ${timeForm}.`);
    }
  };
}
