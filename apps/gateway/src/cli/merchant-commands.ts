import { helpFormat } from '@order-gateway/command';
import {
  type ChecksumMode,
  type ConsoleRole,
  checksumModes,
  consoleLimits,
  consoleRoles,
  lateDays,
  liveSecretsMax,
} from '@order-gateway/domain/accounts';
import { signInLink } from '@order-gateway/domain/links';
import type { AccountAdmin } from '@order-gateway/postgres/accounts';
import { displayTime, secretNote, startList } from '@order-gateway/runtime/output';
import { StartError } from '@order-gateway/runtime/process';
import { Argument, type Command, Option } from 'commander';
import { secretResponse } from '../operations/credentials.ts';
import {
  accountCommand,
  actorOf,
  actorOption,
  clientIdHelp,
  createProgram,
  jsonHelp,
  lateDaysForm,
  nameOption,
  parseClientId,
  parseEnd,
  parseLateDays,
  parseLifetime,
  parseLimit,
  parseSecretNumber,
  timeForm,
} from './arguments.ts';
import { requireView } from './require-view.ts';
import { baseUrlOf, type OpenAccounts, unknownAccount } from './with-database.ts';

/** The options of commands that need no existing merchant, and can therefore be the first to run on a new database. */
const creating = { creates: true } as const;

/** The number of rows that a list reads from the database at a time. */
const listPage = 500;

/**
 * Creates the commands of `merchant`. No command accepts a secret as an argument, because every user of the
 * machine can see arguments. Wrong arguments end the process with exit code 2, or reject with a {@link UsageError},
 * before the database is opened.
 */
export function merchantCommands(openAccounts: OpenAccounts, print: (line: string) => void): Command {
  const program = recordedProgram('merchant', 'Creates merchants, and manages their secrets, settings and webhooks.');
  const withAccounts: OpenAccounts = (work, options) => openAccounts(work, { actor: actorOf(program), ...options });
  for (const add of [
    addCreateCommand,
    addListCommand,
    addSettingCommands,
    addLogCommand,
    addSecretCommands,
    addConsoleCommand,
  ]) {
    add(program, withAccounts, print);
  }
  return program;
}

type Print = (line: string) => void;

/** Adds `merchant create`. */
function addCreateCommand(program: Command, withAccounts: OpenAccounts, print: Print): void {
  program
    .command('create')
    .description('Creates a merchant with its first client id and secret.')
    .addOption(nameOption('shown to customers').makeOptionMandatory())
    .option('--test', 'a test merchant, whose orders move no money; this can never be changed')
    .option('--json', jsonHelp)
    .action(({ name, test, json }: { name: string; test?: true; json?: true }) =>
      withAccounts(async (accounts) => {
        const mode = test ? 'test' : 'live';
        const { clientId, clientSecret } = await accounts.create(name, mode);
        if (json) return print(JSON.stringify({ name, mode, client_id: clientId, client_secret: clientSecret }));
        print(`Created ${mode} merchant ${name}\n${credentialLines(clientId, clientSecret)}`);
      }, creating),
    );
}

/** Adds `merchant list`. */
function addListCommand(program: Command, withAccounts: OpenAccounts, print: Print): void {
  program
    .command('list')
    .description('Lists all merchants and checkout systems, oldest first.')
    .option('--json', jsonHelp)
    .action(({ json }: { json?: true }) =>
      withAccounts(async (accounts) => {
        const columns = {
          'CLIENT ID': 33,
          'LOG ID': 8,
          KIND: 8,
          STATE: 8,
          CHECKSUM: 9,
          'LIVE SECRETS': 12,
          CREATED: 23,
          NAME: 0,
        };
        const { printRow, end } = startList(columns, json, print);
        let page = await accounts.list({ limit: listPage });
        while (page.length > 0) {
          for (const { mode, ...account } of page) {
            const kind = account.kind === 'merchant' ? mode : account.kind;
            const { clientId, id, name, checksumMode, liveSecrets, createdAt, disabledAt } = account;
            const state = disabledAt === null ? 'enabled' : 'disabled';
            const cells = [
              clientId,
              `${id}`,
              kind,
              state,
              checksumMode,
              `${liveSecrets}`,
              displayTime(createdAt),
              name,
            ];
            printRow({ ...account, kind }, ...cells);
          }
          page = await accounts.list({ limit: listPage, afterClientId: page.at(-1)?.clientId ?? '' });
        }
        end('There are no merchants yet.');
      }),
    );
}

/** Adds the commands that change a setting of an account. */
function addSettingCommands(program: Command, withAccounts: OpenAccounts, print: Print): void {
  /** Changes a setting of an account, and prints the new state. */
  const set = (clientId: string, change: (accounts: AccountAdmin) => Promise<string>, sentence: string) =>
    withAccounts(async (accounts) => {
      if ((await change(accounts)) === 'unknown_account') throw unknownAccount(clientId);
      print(sentence);
    });

  accountCommand(program, 'rename', 'Changes the name that customers see.')
    .addOption(nameOption('shown to customers').makeOptionMandatory())
    .action((clientId: string, { name }: { name: string }) =>
      set(clientId, (accounts) => accounts.rename(clientId, name), `${clientId} is now ${name}.`),
    );

  accountCommand(
    program,
    'disable',
    'Rejects all credentials of an account within a second, and allows no new payments for its orders.',
  ).action((clientId: string) => set(clientId, (accounts) => accounts.disable(clientId), `${clientId} is disabled.`));

  accountCommand(program, 'enable', 'Accepts the credentials of a disabled account again.').action((clientId: string) =>
    set(clientId, (accounts) => accounts.enable(clientId), `${clientId} is enabled.`),
  );

  accountCommand(program, 'checksum', "Sets how the merchant's order checksums are verified.")
    .addArgument(
      new Argument(
        '<MODE>',
        'versioned: a checksum that begins with v1= must be valid; required: every order needs a valid one',
      ).choices(checksumModes),
    )
    .action((clientId: string, mode: ChecksumMode) => {
      const sentence = `Order checksums of ${clientId} are now ${mode}.`;
      return set(clientId, (accounts) => accounts.setChecksumMode(clientId, mode), sentence);
    });

  accountCommand(program, 'lifetime', 'Sets the lifetime of orders that are sent without order_expires_at.')
    .argument('<LIFETIME>', '1m to 366d, such as 30m, 24h or 7d, or none', parseLifetime)
    .action((clientId: string, seconds: number | null) => {
      const rule = seconds === null ? 'do not expire' : `expire after ${seconds} seconds`;
      const sentence = `Orders of ${clientId} without order_expires_at now ${rule}.`;
      return set(clientId, (accounts) => accounts.setDefaultLifetime(clientId, seconds), sentence);
    });

  accountCommand(program, 'limit', 'Sets how many calls per second each process accepts from the merchant.')
    .argument('<NUMBER>', '1 to 1000000, or none: RATE_LIMIT applies', parseLimit)
    .action((clientId: string, limit: number | null) => {
      const rule = limit === null ? 'has no separate rate limit' : `may make ${limit} calls per second`;
      return set(clientId, (accounts) => accounts.setRateLimit(clientId, limit), `${clientId} now ${rule}.`);
    });
}

/** Adds `merchant log`, which lists the audit log. */
function addLogCommand(program: Command, withAccounts: OpenAccounts, print: Print): void {
  program
    .command('log')
    .description('Lists the audit log, oldest first.')
    .argument('[CLIENT_ID]', 'only the entries of this account', parseClientId)
    .option('--json', jsonHelp)
    .action((clientId: string | undefined, { json }: { json?: true }) =>
      withAccounts(async (accounts) => {
        let page = await accounts.log({ clientId, after: 0, limit: listPage });
        if (clientId !== undefined && page.length === 0 && (await accounts.listSecrets(clientId)) === undefined)
          throw unknownAccount(clientId);
        const { printRow, end } = startList(
          { TIME: 23, ACTION: 16, 'CLIENT ID': 33, WHO: 24, DETAILS: 0 },
          json,
          print,
        );
        while (page.length > 0) {
          for (const { createdAt, action, actor, details, ...entry } of page) {
            const fields = { time: createdAt, action, client_id: entry.clientId, who: actor, details };
            printRow(fields, displayTime(createdAt), action, entry.clientId ?? '', actor, JSON.stringify(details));
          }
          page = await accounts.log({ clientId, after: page.at(-1)?.id ?? 0, limit: listPage });
        }
        end('The audit log is empty.');
      }),
    );
}

/** Adds the commands of `merchant secret`. */
function addSecretCommands(program: Command, withAccounts: OpenAccounts, print: Print): void {
  const secret = program
    .command('secret')
    .description('Adds, lists and revokes the client secrets of a merchant or checkout system.');

  accountCommand(
    secret,
    'add',
    `Adds a client secret, which works immediately. Up to ${liveSecretsMax} can work at the same time.`,
  )
    .option('--ends <TIME>', `when the secret stops working: ${timeForm} (default: never)`, parseEnd)
    .option('--json', jsonHelp)
    .action((clientId: string, { ends, json }: { ends?: Date; json?: true }) =>
      withAccounts(async (accounts) => {
        const added = await accounts.addSecret(clientId, ends ?? null);
        if (added.kind === 'unknown_account') throw unknownAccount(clientId);
        if (added.kind !== 'added')
          throw new StartError(
            `${clientId} has ${liveSecretsMax} secrets that work, which is the limit. Revoke one first.`,
          );
        const { id, createdAt, clientSecret } = added;
        if (json) return print(JSON.stringify(secretResponse({ id, createdAt, endsAt: ends ?? null }, clientSecret)));
        print(`Added secret ${id} of ${clientId}\n  client secret: ${clientSecret}\n${secretNote}`);
      }),
    );

  accountCommand(secret, 'list', 'Lists the client secrets by number. The secrets themselves are not stored.')
    .option('--json', jsonHelp)
    .action((clientId: string, { json }: { json?: true }) =>
      withAccounts(async (accounts) => {
        const secrets = await accounts.listSecrets(clientId);
        if (secrets === undefined) throw unknownAccount(clientId);
        const listed = secrets.map((secret) => secretResponse(secret));
        if (json) return print(JSON.stringify({ secrets: listed }));
        const { printRow, end } = startList({ NUMBER: 6, CREATED: 23, STATE: 0 }, json, print);
        for (const { id, createdAt, endsAt } of secrets) {
          const state =
            endsAt === null
              ? 'works'
              : `${endsAt.getTime() > Date.now() ? 'works until' : 'ended'} ${displayTime(endsAt)}`;
          printRow({}, `${id}`, displayTime(createdAt), state);
        }
        end(`${clientId} has no secrets.`);
      }),
    );

  accountCommand(secret, 'revoke', 'Revokes a client secret in every process within a second, or at a given time.')
    .argument('<NUMBER>', "the secret's number, as `merchant secret list` shows it", parseSecretNumber)
    .option('--ends <TIME>', `when the secret stops working: ${timeForm} (default: now)`, parseEnd)
    .action((clientId: string, number: number, { ends }: { ends?: Date }) =>
      withAccounts(async (accounts) => {
        const ended = await accounts.endSecret(clientId, number, ends ?? null);
        if (ended.kind === 'unknown_account') throw unknownAccount(clientId);
        if (ended.kind === 'unknown_secret') throw new StartError(`${clientId} has no secret ${number}.`);
        if (ended.kind !== 'ends') throw new StartError(`Secret ${number} of ${clientId} has already ended.`);
        const when = ends === undefined ? 'now' : `at ${displayTime(ended.endsAt)}`;
        print(`Secret ${number} of ${clientId} ends ${when}.`);
      }),
    );
}

/** Creates the commands of `checkout`. A checkout system's secrets are managed with `merchant secret`. */
export function checkoutCommands(openAccounts: OpenAccounts, print: (line: string) => void): Command {
  const program = recordedProgram(
    'checkout',
    'Creates the accounts of checkout systems, which record the payments of all merchants.',
  );
  program
    .command('create')
    .description('Creates a checkout system with its first client id and secret.')
    .addOption(nameOption('for the operator').makeOptionMandatory())
    .option('--customer-data', "gives it the customer's data of the orders that it claims; this can never be changed")
    .addOption(
      new Option('--late-days <NUMBER>', `how long it can report payments after an order's expiry, ${lateDaysForm}`)
        .argParser(parseLateDays)
        .default(lateDays.byDefault),
    )
    .option('--refunds', 'lets merchants refund its payments, because it makes the refunds')
    .option('--json', jsonHelp)
    .action(({ name, json, customerData, lateDays, refunds }: CheckoutOptions) =>
      openAccounts(
        async (accounts) => {
          const settings = { lateDays, getsCustomerData: customerData, makesRefunds: refunds };
          const { clientId, clientSecret } = await accounts.create(name, 'checkout', settings);
          if (json) return print(JSON.stringify({ name, client_id: clientId, client_secret: clientSecret }));
          print(`Created checkout system ${name}\n${credentialLines(clientId, clientSecret)}`);
        },
        { actor: actorOf(program), ...creating },
      ),
    );
  program
    .command('late-days')
    .description("Sets how long after an order's expiry a checkout system can report a payment that was made in time.")
    .argument('<CLIENT_ID>', clientIdHelp, parseClientId)
    .argument('<NUMBER>', lateDaysForm, parseLateDays)
    .action((clientId: string, days: number) =>
      openAccounts(
        async (accounts) => {
          if ((await accounts.setLateDays(clientId, days)) === 'unknown_account') {
            throw new StartError(`There is no checkout system ${clientId}.`);
          }
          print(`${clientId} can now report payments for ${days} days after an order's expiry.`);
        },
        { actor: actorOf(program) },
      ),
    );
  program
    .command('refunds')
    .description('Sets whether merchants can refund the payments of a checkout system, because it makes the refunds.')
    .argument('<CLIENT_ID>', clientIdHelp, parseClientId)
    .addArgument(new Argument('<on|off>', 'off keeps the refunds that are pending').choices(['on', 'off']))
    .action((clientId: string, setting: 'on' | 'off') =>
      openAccounts(
        async (accounts) => {
          if ((await accounts.setMakesRefunds(clientId, setting === 'on')) === 'unknown_account') {
            throw new StartError(`There is no checkout system ${clientId}.`);
          }
          print(`Merchants can ${setting === 'on' ? 'now' : 'no longer'} refund payments of ${clientId}.`);
        },
        { actor: actorOf(program) },
      ),
    );
  return program;
}

interface CheckoutOptions {
  readonly name: string;
  readonly json?: true;
  readonly customerData?: true;
  readonly refunds?: true;
  readonly lateDays: number;
}

/** Creates a program whose commands are recorded in the audit log. */
function recordedProgram(name: string, description: string): Command {
  return createProgram(name, description)
    .addOption(actorOption())
    .configureHelp({ ...helpFormat, showGlobalOptions: true })
    .configureOutput({
      // The arguments may contain a secret that was typed by mistake.
      outputError: (text, write) => write(text.replaceAll(/\b(sk|whsec)_[\w+/=]+/g, '$1_...')),
    });
}

function credentialLines(clientId: string, clientSecret: string): string {
  return `  client id:     ${clientId}\n  client secret: ${clientSecret}\n${secretNote}`;
}

/** Adds `merchant console`, which creates one-time links to the console. */
function addConsoleCommand(program: Command, withAccounts: OpenAccounts, print: (line: string) => void): void {
  const minutes = consoleLimits.linkMs / 60_000;
  accountCommand(
    program,
    'console',
    `Prints a link to the console that signs one person in, within ${minutes} minutes.`,
  )
    .addOption(nameOption('who signs in, for the audit log').default('operator'))
    .addOption(
      new Option('--role <ROLE>', 'manage: can view and change everything; read: can only view')
        .choices(consoleRoles)
        .default('manage'),
    )
    .option('--json', jsonHelp)
    .action((clientId: string, { name, role, json }: { name: string; role: ConsoleRole; json?: true }) =>
      withAccounts(async (accounts, config) => {
        const baseUrl = baseUrlOf(config);
        await requireView(new URL(`${baseUrl}/console`), 'The console is off. Start the gateway with CONSOLE=on.');
        const token = await accounts.createConsoleLink(clientId, { name, role });
        if (token === undefined) throw new StartError(`${clientId} is not an enabled merchant.`);
        const url = signInLink(baseUrl, token);
        if (json) return print(JSON.stringify({ url, name, role, expires_in_seconds: consoleLimits.linkMs / 1_000 }));
        print(`${url}\nThe link signs ${name} in once, within ${minutes} minutes.`);
      }),
    );
}
