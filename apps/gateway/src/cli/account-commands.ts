import { merchantNameRule } from '@gateway/domain/merchant';
import type { Command } from 'commander';
import {
  actorOf,
  clientCommand,
  jsonHelp,
  listPage,
  parseClientId,
  parseName,
  readable,
  settingOf,
  startList,
} from './merchant-commands.ts';
import type { OpenAccounts } from './with-accounts.ts';

/** Adds the commands of `pnpm merchant` that rename, disable and enable a client, and the audit log. */
export function addAccountCommands(program: Command, openAccounts: OpenAccounts, print: (line: string) => void): void {
  const set = settingOf(program, openAccounts, print);

  clientCommand(program, 'rename')
    .description('Changes the name that customers see.')
    .requiredOption('--name <NAME>', `1 to ${merchantNameRule.lengthMax} characters`, parseName('--name'))
    .action((clientId: string, { name }: { name: string }) =>
      set(clientId, (accounts) => accounts.rename(clientId, name), `${clientId} is now ${name}.`),
    );

  clientCommand(program, 'disable')
    .description('Rejects all credentials of a client within a second, and starts no payment of its orders.')
    .action((clientId: string) => set(clientId, (accounts) => accounts.disable(clientId), `${clientId} is disabled.`));

  clientCommand(program, 'enable')
    .description('Accepts the credentials of a disabled client again.')
    .action((clientId: string) => set(clientId, (accounts) => accounts.enable(clientId), `${clientId} is enabled.`));

  program
    .command('log')
    .description('Lists what operators did, the oldest first.')
    .argument('[CLIENT_ID]', 'only what concerns this client', parseClientId)
    .option('--json', jsonHelp)
    .action((clientId: string | undefined, { json }: { json?: true }) =>
      openAccounts(async (accounts) => {
        const printRow = startList({ TIME: 23, ACTION: 16, 'CLIENT ID': 33, WHO: 24, DETAILS: 0 }, json, print);
        let page = await accounts.log({ clientId, after: 0, limit: listPage });
        while (page.length > 0) {
          for (const { createdAt, action, actor, details, ...entry } of page) {
            const facts = { time: createdAt, action, client_id: entry.clientId, who: actor, details };
            printRow(facts, readable(createdAt), action, entry.clientId ?? '', actor, JSON.stringify(details));
          }
          page = await accounts.log({ clientId, after: page.at(-1)?.id ?? 0, limit: listPage });
        }
      }, actorOf(program)),
    );
}
