import { liveSecretsMax } from '@gateway/domain/credentials';
import { type MerchantAccounts, openMerchantAccounts } from '@gateway/postgres/merchant-admin';
import { readConfig } from '../config.ts';
import { openDatabase } from '../database.ts';
import { onStopSignal, run, StartError } from '../process.ts';
import { type MerchantCommand, merchantUsage, readMerchantCommand } from './merchant-command.ts';

/** Merchants read from the database at once. */
const listPage = 500;

await run(async () => {
  const command = readMerchantCommand(process.argv.slice(2), Date.now());
  if (command.kind === 'help') return print(merchantUsage);
  const work = openAndCarryOut(command);
  // Brought to its end, which takes a moment: else its PostgreSQL would be left behind, or a secret made and not shown.
  onStopSignal(() => work);
  await work;
});

type WorkingCommand = Exclude<MerchantCommand, { kind: 'help' }>;

async function openAndCarryOut(command: WorkingCommand): Promise<void> {
  const database = await openDatabase(readConfig(process.env));
  const accounts = openMerchantAccounts({ url: database.url });
  try {
    await carryOut(command, accounts);
  } finally {
    await accounts.close();
    await database.close();
  }
}

async function carryOut(command: WorkingCommand, accounts: MerchantAccounts): Promise<void> {
  switch (command.kind) {
    case 'create': {
      const { clientId, clientSecret } = await accounts.create(command.name);
      const made = { name: command.name, client_id: clientId, client_secret: clientSecret };
      return print(
        command.json ? made : `Merchant ${command.name}\n  client id:     ${clientId}\n${secretTold(clientSecret)}`,
      );
    }
    case 'list':
      return listMerchants(accounts, command.json);
    case 'checksum': {
      const done = await accounts.setChecksumMode(command.clientId, command.mode);
      if (done === 'unknown_client') throw unknownClient(command.clientId);
      return print(`Order checksums of ${command.clientId} are ${command.mode} now.`);
    }
    case 'secret add':
      return addSecret(accounts, command);
    case 'secret list':
      return listSecrets(accounts, command);
    case 'secret revoke': {
      const { clientId, secretId, endsAt } = command;
      const ended = await accounts.endSecret(clientId, secretId, endsAt);
      if (ended.kind === 'unknown_secret') throw new StartError(`${clientId} has no secret ${secretId}.`);
      if (ended.kind === 'ended_already')
        throw new StartError(`Secret ${secretId} of ${clientId} has ended already, and stays so.`);
      const when = endsAt === null ? 'now, within a second in every process' : ended.at.toISOString();
      return print(`Secret ${secretId} of ${clientId} ends ${when}.`);
    }
  }
}

async function listMerchants(accounts: MerchantAccounts, json: boolean): Promise<void> {
  let afterClientId: string | undefined;
  for (;;) {
    const page = await accounts.list({ limit: listPage, ...(afterClientId === undefined ? {} : { afterClientId }) });
    for (const { clientId, name, checksumMode, liveSecrets, createdAt } of page) {
      const facts = {
        client_id: clientId,
        name,
        checksum_mode: checksumMode,
        live_secrets: liveSecrets,
        created_at: createdAt,
      };
      print(
        json
          ? facts
          : `${clientId}  ${checksumMode.padEnd(9)}  ${liveSecrets} live  ${createdAt.toISOString()}  ${name}`,
      );
    }
    afterClientId = page.at(-1)?.clientId;
    if (page.length < listPage) return;
  }
}

async function addSecret(
  accounts: MerchantAccounts,
  { clientId, endsAt, json }: MerchantCommand & { kind: 'secret add' },
): Promise<void> {
  const added = await accounts.addSecret(clientId, endsAt);
  if (added.kind !== 'added') throw added.kind === 'too_many' ? tooManySecrets(clientId) : unknownClient(clientId);
  print(
    json
      ? { client_id: clientId, number: added.id, client_secret: added.clientSecret }
      : `Secret ${added.id} of ${clientId}\n${secretTold(added.clientSecret)}`,
  );
}

async function listSecrets(
  accounts: MerchantAccounts,
  { clientId, json }: MerchantCommand & { kind: 'secret list' },
): Promise<void> {
  const secrets = await accounts.listSecrets(clientId);
  if (secrets === undefined) throw unknownClient(clientId);
  for (const { id, createdAt, endsAt } of secrets) {
    const state = endsAt === null ? 'works' : endsAt.getTime() > Date.now() ? 'works until' : 'ended';
    const facts = { number: id, created_at: createdAt, ends_at: endsAt };
    print(json ? facts : `${id}  made ${createdAt.toISOString()}  ${state} ${endsAt?.toISOString() ?? ''}`.trimEnd());
  }
}

function secretTold(clientSecret: string): string {
  return `  client secret: ${clientSecret}\nThe secret is shown this once. Keep it where only the merchant's backend can read it.`;
}

function unknownClient(clientId: string): StartError {
  return new StartError(`There is no client ${clientId}.`);
}

function tooManySecrets(clientId: string): StartError {
  return new StartError(`${clientId} has ${liveSecretsMax} secrets that work, the most it may have. Revoke one first.`);
}

function print(answer: string | Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${typeof answer === 'string' ? answer : JSON.stringify(answer)}\n`);
}
