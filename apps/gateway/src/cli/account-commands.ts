import { merchantNameRule } from '@gateway/domain/merchant';
import type { MerchantAccounts } from '@gateway/postgres/merchant-admin';
import type { Command } from 'commander';
import {
  actorOf,
  clientIdHelp,
  jsonHelp,
  listPage,
  type OpenAccounts,
  parseClientId,
  parseName,
  readable,
  rowOf,
  unknownClient,
} from './merchant-commands.ts';
import type { WorkWithAccounts } from './with-accounts.ts';

/** Adds the commands of `pnpm merchant` that rename, disable and enable a client, and the audit log. */
export function addAccountCommands(program: Command, openAccounts: OpenAccounts, print: (line: string) => void): void {
  const withAccounts = (work: WorkWithAccounts) => openAccounts(work, actorOf(program));

  program
    .command('rename')
    .description('Changes the name that customers see.')
    .argument('<CLIENT_ID>', clientIdHelp, parseClientId)
    .requiredOption('--name <NAME>', `1 to ${merchantNameRule.lengthMax} characters`, parseName)
    .action((clientId: string, { name }: { name: string }) =>
      withAccounts(async (accounts) => {
        if ((await accounts.rename(clientId, name)) === 'unknown_client') throw unknownClient(clientId);
        print(`${clientId} is now ${name}.`);
      }),
    );

  program
    .command('disable')
    .description('Rejects all credentials of a client within a second, and starts no payment of its orders.')
    .argument('<CLIENT_ID>', clientIdHelp, parseClientId)
    .action((clientId: string) =>
      withAccounts(async (accounts) => {
        if ((await accounts.disable(clientId)) === 'unknown_client') throw unknownClient(clientId);
        print(`${clientId} is disabled.`);
      }),
    );

  program
    .command('enable')
    .description('Accepts the credentials of a disabled client again.')
    .argument('<CLIENT_ID>', clientIdHelp, parseClientId)
    .action((clientId: string) =>
      withAccounts(async (accounts) => {
        if ((await accounts.enable(clientId)) === 'unknown_client') throw unknownClient(clientId);
        print(`${clientId} is enabled.`);
      }),
    );

  program
    .command('log')
    .description('Lists what operators did, the oldest first.')
    .argument('[CLIENT_ID]', 'only what concerns this client', parseClientId)
    .option('--json', jsonHelp)
    .action((clientId: string | undefined, { json }: { json?: true }) =>
      withAccounts((accounts) => listActions(accounts, clientId, json, print)),
    );
}

async function listActions(
  accounts: MerchantAccounts,
  clientId: string | undefined,
  json: boolean | undefined,
  print: (line: string) => void,
): Promise<void> {
  const row = rowOf([23, 16, 33, 24]);
  if (!json) print(row('TIME', 'ACTION', 'CLIENT ID', 'WHO', 'DETAILS'));
  let page = await accounts.log({ clientId, after: 0, limit: listPage });
  while (page.length > 0) {
    for (const { createdAt, action, actor, details, ...entry } of page) {
      if (json) print(JSON.stringify({ time: createdAt, action, client_id: entry.clientId, who: actor, details }));
      else print(row(readable(createdAt), action, entry.clientId ?? '', actor, JSON.stringify(details)));
    }
    page = await accounts.log({ clientId, after: page.at(-1)?.id ?? 0, limit: listPage });
  }
}
