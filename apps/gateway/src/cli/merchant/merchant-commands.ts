import {
  type ChecksumMode,
  type ConsoleRole,
  checksumModes,
  consoleLimits,
  consoleRoles,
} from '@order-gateway/domain/accounts';
import { signInLink } from '@order-gateway/domain/links';
import { displayTime, startList } from '@order-gateway/runtime/output';
import { StartError } from '@order-gateway/runtime/process';
import { Argument, type Command, Option } from 'commander';
import {
  accountCommand,
  createRecordedProgram,
  jsonHelp,
  nameOption,
  parseClientId,
  parseLifetime,
  parseLimit,
} from '../arguments.ts';
import { credentialLines } from '../new-secret.ts';
import { requireView } from '../require-view.ts';
import { baseUrlOf, type OpenAccounts, settingChanger, unknownAccount } from '../with-database.ts';
import { addSecretCommands } from './secret-commands.ts';

/** The number of rows that a list reads from the database at a time. */
const listPage = 500;

/**
 * Creates the commands of `merchant`. No command accepts a secret as an argument, because every user of the
 * machine can see arguments. Wrong arguments end the process with exit code 2, or reject with a {@link UsageError},
 * before the database is opened.
 */
export function merchantCommands(openAccounts: OpenAccounts, print: (line: string) => void): Command {
  const description = 'Creates merchants, and manages their secrets, settings and webhooks.';
  const { program, withAccounts } = createRecordedProgram('merchant', description, openAccounts);
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
      withAccounts(
        async (accounts) => {
          const mode = test ? 'test' : 'live';
          const { clientId, clientSecret } = await accounts.create(name, mode);
          if (json) return print(JSON.stringify({ name, mode, client_id: clientId, client_secret: clientSecret }));
          print(`Created ${mode} merchant ${name}\n${credentialLines(clientId, clientSecret)}`);
          // This can be the first command on a new database.
        },
        { creates: true },
      ),
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
  const set = settingChanger(withAccounts, print);

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

/** Adds `merchant console`, which creates one-time links to the console. */
function addConsoleCommand(program: Command, withAccounts: OpenAccounts, print: Print): void {
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
