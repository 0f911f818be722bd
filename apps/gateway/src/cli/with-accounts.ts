import type { BaseUrl } from '@order-gateway/domain/links';
import { type AccountAdmin, openAccountAdmin } from '@order-gateway/postgres/accounts';
import type { Config } from '../config.ts';
import { defaultBaseUrl, hostInUrl } from '../network/listen.ts';
import { StartError } from '../start/process.ts';
import { type DatabaseOptions, withDatabase } from './with-database.ts';

export type OpenAccounts = typeof withAccounts;

export function unknownAccount(clientId: string): StartError {
  return new StartError(`There is no account ${clientId}.`);
}

/** Returns the base URL of a gateway with this configuration. */
export function baseUrlOf({ baseUrl, host, httpPort, tls }: Config): BaseUrl {
  return baseUrl ?? defaultBaseUrl(tls === undefined ? 'http' : 'https', hostInUrl(host), httpPort);
}

interface AccountsOptions extends DatabaseOptions {
  /** The actor in the audit log. */
  readonly actor?: string | undefined;
}

/** Opens the accounts of merchants and checkout systems for a command, and closes them afterwards. */
export function withAccounts(
  work: (accounts: AccountAdmin, config: Config) => Promise<void>,
  { actor, ...options }: AccountsOptions = {},
): Promise<void> {
  return withDatabase(async (url, config) => {
    await using accounts = openAccountAdmin({ url, actor });
    await work(accounts, config);
  }, options);
}
