import { liveSecretsMax } from '@order-gateway/domain/accounts';
import { displayTime, startList } from '@order-gateway/runtime/output';
import { StartError } from '@order-gateway/runtime/process';
import type { Command } from 'commander';
import { secretResponse } from '../../operations/credentials.ts';
import { accountCommand, jsonHelp, parseEnd, parseSecretNumber, timeForm } from '../arguments.ts';
import { secretNote } from '../new-secret.ts';
import { type OpenAccounts, unknownAccount } from '../with-database.ts';

/** Adds the commands of `merchant secret`. */
export function addSecretCommands(program: Command, withAccounts: OpenAccounts, print: (line: string) => void): void {
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
