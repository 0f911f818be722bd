import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { openDatabase } from '@order-gateway/postgres/open-database';
import { createEncryption } from '@order-gateway/runtime/encryption';
import { print } from '@order-gateway/runtime/output';
import { messageOf, run, StartError, systemActor } from '@order-gateway/runtime/process';
import { findSecretsKeys } from '@order-gateway/runtime/secrets-keys';
import { type Config, findCredentials, readConfig } from '../config.ts';
import { openGateway, unreachable } from '../gateway/gateway.ts';
import { accountReader } from '../providers/accounts.ts';
import { createProviders } from '../providers/all.ts';
import { inBackground } from '../providers/paced.ts';
import { checkoutMigrations } from '../store/migrate.ts';
import { openStore } from '../store/store.ts';
import { addCheckCommand } from './check.ts';
import { type GatewayDeps, type PaymentsDeps, paymentsCommands, type ReadSecrets, type With } from './commands.ts';
import { addRefundCommands } from './refunds.ts';
import { addStatementCommands } from './statement.ts';

async function withConfig(work: (deps: PaymentsDeps, config: Config) => Promise<void>): Promise<void> {
  const config = readConfig(process.env);
  const database = await openDatabase(config, { migrations: checkoutMigrations });
  const store = openStore(database);
  try {
    const keys = await findSecretsKeys(config);
    const providers = createProviders(store, { baseUrl: () => config.baseUrl ?? '' });
    await work({ store, providers, encryption: keys && createEncryption<string>(keys) }, config);
  } catch (error) {
    throw error instanceof StartError ? error : new StartError(`The command failed: ${messageOf(error)}`);
  } finally {
    await store.close();
    await database.close();
  }
}

/** Runs work that calls the gateway. No customer waits for its calls of providers. */
const withGateway: With<GatewayDeps> = (work) =>
  withConfig(async ({ store, providers, encryption }, config) => {
    const gateway = openGateway(config.gatewayGrpcUrl, await findCredentials(config));
    try {
      await inBackground(() => work({ store, gateway, providers, accountOf: accountReader(store, encryption) }));
    } catch (error) {
      throw unreachable(error, config.gatewayGrpcUrl) ?? error;
    }
  });

const readSecrets: ReadSecrets = async (names, file) => {
  if (file !== undefined) return linesOf(await readFile(file, 'utf8'));
  if (!process.stdin.isTTY) return linesOf(await text(process.stdin));
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true });
  const values: string[] = [];
  for (const name of names) {
    process.stderr.write(`${name.replace(/(?<=[a-z])[A-Z]/, (letter) => ` ${letter.toLowerCase()}`)}: `);
    values.push((await terminal.question('')).trim());
    process.stderr.write('\n');
  }
  terminal.close();
  return values;
};

const linesOf = (content: string) => content.split('\n').map((line) => line.trim());

const actor = systemActor();

/** `payments`. */
export const program = paymentsCommands(withConfig, { print, readSecrets, actor });
addStatementCommands(program, withGateway, { print, actor });
addRefundCommands(program, withGateway, { print, actor });
addCheckCommand(program, withGateway, print);
program
  .command('migrate')
  .description('Migrates the database to the schema of this version, as the checkout does at start unless MIGRATE=off.')
  .action(async () => {
    const database = await openDatabase(
      { ...readConfig(process.env), migrate: true },
      { migrations: checkoutMigrations },
    );
    await database.close();
    print('The database has the schema of this version.');
  });
if (import.meta.main) await run(() => program.parseAsync());
