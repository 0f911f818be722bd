import { type ConsoleRole, consoleLimits, consoleRoles } from '@order-gateway/domain/accounts';
import { signInLink } from '@order-gateway/domain/links';
import { type Command, Option } from 'commander';
import { StartError } from '../start/process.ts';
import { accountCommand, actorOf, jsonHelp, nameOption } from './arguments.ts';
import { baseUrlOf, type OpenAccounts } from './with-accounts.ts';

/** Adds `merchant console`, which creates one-time links to the console. */
export function addConsoleCommand(program: Command, openAccounts: OpenAccounts, print: (line: string) => void): void {
  const minutes = consoleLimits.linkMs / 60_000;
  accountCommand(
    program,
    'console',
    `Prints a link to the console that signs one person in, within ${minutes} minutes.`,
  )
    .addOption(nameOption('who signs in, for the audit log').default('operator'))
    .addOption(
      new Option('--role <ROLE>', 'manage: sees and changes everything; read: only sees')
        .choices(consoleRoles)
        .default('manage'),
    )
    .option('--json', jsonHelp)
    .action((clientId: string, { name, role, json }: { name: string; role: ConsoleRole; json?: true }) =>
      openAccounts(
        async (accounts, config) => {
          const token = await accounts.createConsoleLink(clientId, { name, role });
          if (token === undefined) throw new StartError(`${clientId} is not an enabled merchant.`);
          const url = signInLink(baseUrlOf(config), token);
          if (json) return print(JSON.stringify({ url, name, role, expires_in_seconds: consoleLimits.linkMs / 1_000 }));
          print(`${url}\nThe link signs ${name} in once, within ${minutes} minutes.`);
        },
        { actor: actorOf(program) },
      ),
    );
}
