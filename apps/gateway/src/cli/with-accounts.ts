import { type MerchantAccounts, openMerchantAccounts } from '@gateway/postgres/merchant-admin';
import { readConfig } from '../config.ts';
import { openDatabase } from '../database.ts';
import { messageOf, onStopSignal, StartError } from '../process.ts';

/** What a command does once the database is open. */
export type WorkWithAccounts = (accounts: MerchantAccounts) => Promise<void>;

/** Opens the database of the configuration for a command, and closes it afterwards. */
export async function withAccounts(work: WorkWithAccounts): Promise<void> {
  const done = openAndWork(work);
  // A signal waits for the end, which takes a moment: otherwise a PostgreSQL would stay behind, or a new secret never be shown.
  onStopSignal(() => done);
  await done;
}

async function openAndWork(work: WorkWithAccounts): Promise<void> {
  const database = await openDatabase(readConfig(process.env));
  const accounts = openMerchantAccounts({ url: database.url });
  try {
    await work(accounts);
  } catch (error) {
    throw error instanceof StartError ? error : new StartError(`The command failed: ${messageOf(error)}`);
  } finally {
    await accounts.close();
    await database.close();
  }
}
