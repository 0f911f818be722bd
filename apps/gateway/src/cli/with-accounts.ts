import { type MerchantAccounts, openMerchantAccounts } from '@gateway/postgres/merchant-admin';
import { type Config, readConfig } from '../config.ts';
import { openDatabase } from '../database.ts';
import { messageOf, onStopSignal, StartError } from '../process.ts';

export type OpenAccounts = typeof withAccounts;

export function unknownClient(clientId: string): StartError {
  return new StartError(`There is no client ${clientId}.`);
}

/** Opens the merchants' accounts for a command, and closes them afterwards. `actor` is for the audit log. */
export function withAccounts(work: (accounts: MerchantAccounts) => Promise<void>, actor?: string): Promise<void> {
  return withDatabase(async (url) => {
    const accounts = openMerchantAccounts({ url, actor });
    try {
      await work(accounts);
    } finally {
      await accounts.close();
    }
  });
}

/** Opens the database of the configuration, which `settings` overrule, for a command, and closes it afterwards. */
export async function withDatabase(
  work: (url: string, config: Config) => Promise<void>,
  settings: Partial<Config> = {},
): Promise<void> {
  const done = openAndWork(work, { ...readConfig(process.env), ...settings });
  // A signal waits for the end, which takes a moment: otherwise a PostgreSQL would stay behind, or a new secret never be shown.
  onStopSignal(() => done);
  await done;
}

async function openAndWork(work: (url: string, config: Config) => Promise<void>, config: Config): Promise<void> {
  const database = await openDatabase(config);
  try {
    await work(database.url, config);
  } catch (error) {
    throw error instanceof StartError ? error : new StartError(`The command failed: ${messageOf(error)}`);
  } finally {
    await database.close();
  }
}
