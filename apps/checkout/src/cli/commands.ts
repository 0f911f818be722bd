import { createCommand } from '@order-gateway/command';
import { merchantModeOf } from '@order-gateway/domain/accounts';
import { parseOrderToken, tokenIn } from '@order-gateway/domain/links';
import { displayTime, startList } from '@order-gateway/runtime/output';
import { messageOf, StartError, UsageError, usageExitCode } from '@order-gateway/runtime/process';
import type { Command } from 'commander';
import type { AdvanceDeps } from '../attempts/advance.ts';
import { accountReader, type ConnectionEncryption, hasKey } from '../providers/accounts.ts';
import { offeringsOf } from '../providers/all.ts';
import type { Account, Provider } from '../providers/provider.ts';
import { openErasure } from '../store/erasure.ts';
import { newId } from '../store/ids.ts';
import type { Connection, Store } from '../store/store.ts';

/** The dependencies of the commands. */
export interface PaymentsDeps {
  readonly store: Store;
  readonly providers: ReadonlyMap<string, Provider>;
  /** Absent without SECRETS_KEY. */
  readonly encryption: ConnectionEncryption | undefined;
}

/** The dependencies of commands that call the gateway. */
export type GatewayDeps = Pick<AdvanceDeps, 'store' | 'gateway' | 'providers' | 'accountOf'>;

/** Opens what a command needs, and closes it afterwards. */
export type With<Deps> = (work: (deps: Deps) => Promise<void>) => Promise<void>;

/** Reads the named secrets from a file, from standard input, or from a prompt that shows nothing. */
export type ReadSecrets = (names: readonly string[], file: string | undefined) => Promise<readonly string[]>;

/** Where commands print, and who runs them. */
export interface Output {
  readonly print: (line: string) => void;
  /** The actor in the audit log. */
  readonly actor: string;
}

const environmentHelp = `
Environment: DATABASE_URL or DATA_DIR, and SECRETS_KEY, as for the checkout.
statement, assign, refunds, refunded and check call the gateway, and also use
CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET and GATEWAY_GRPC_URL.
Exit codes: 0 success; 1 failure; 2 an argument is invalid, so that nothing was
done.`;

/** The help of the option `--json`. */
export const jsonHelp = 'print JSON, one object per line';

/** Creates the commands of `payments`. No command accepts a key as an argument, which others can see. */
export function paymentsCommands(
  withPayments: With<PaymentsDeps>,
  { print, readSecrets, actor }: Output & { readonly readSecrets: ReadSecrets },
): Command {
  const program = createCommand(
    'payments',
    "Connects merchants' accounts at providers, and records transfers and refunds.",
  )
    .showHelpAfterError()
    .addHelpText('after', environmentHelp)
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : usageExitCode));
  const accountCommand = (name: string, description: string) =>
    program
      .command(name)
      .description(description)
      .argument('<CLIENT_ID>', "the merchant's client id", parseClientId)
      .argument('<PROVIDER>', 'the provider, such as stripe');

  accountCommand('connect', "Connects a merchant's account, or replaces the key of a connected one.")
    .option('--key-file <FILE>', 'the values that `connect` asks for, one on each line (default: asks for them)')
    .action((merchantId: string, name: string, { keyFile }: { keyFile?: string }) =>
      withPayments(async ({ store, providers, encryption }) => {
        const provider = providerOf(providers, name);
        const { identify, secretNames = [] } = provider;
        if (encryption === undefined) throw new StartError('Set SECRETS_KEY, which encrypts the keys of providers.');
        const entered = await readSecrets(secretNames, keyFile);
        const secrets = Object.fromEntries(secretNames.map((secret, index) => [secret, entered[index] ?? '']));
        const { account, mode, settings = {} } = await tried(identify(secrets));
        const merchantMode = merchantModeOf(merchantId);
        if (mode !== merchantMode)
          throw new StartError(`This account is for ${mode} orders, but ${merchantId} is a ${merchantMode} merchant.`);
        const encrypt = (id: string, values: object) => encryption.encrypt(id, Buffer.from(JSON.stringify(values)));
        const connectionId = newId('con');
        const found = { merchantId, provider: name, mode, account, settings };
        const connection = { connectionId, ...found, secrets: encrypt(connectionId, secrets) };
        const isNew = await store.connect(connection, actor);
        const current = await currentOf(store, merchantId, name);
        if (current.account !== account)
          throw new StartError(
            `${merchantId} is connected with another account, ${current.account}. Disconnect it first.`,
          );
        const accountOf = accountReader(store, encryption);
        // Payments of an earlier connection may still be captured or refunded, for which its own key may be too old.
        for (const known of await store.listConnections(merchantId))
          if (known.provider === name && known.connectionId !== connectionId) {
            const isCurrent = known.connectionId === current.connectionId;
            // None are known if they were erased, or if SECRETS_KEY does not decrypt them.
            const stored = await accountOf(known.connectionId).catch(() => undefined);
            const kept = keepSecrets(stored?.secrets ?? {}, secrets, isCurrent);
            const replaced = { secrets: encrypt(known.connectionId, kept), settings };
            await store.replaceSecrets({ ...known, account }, replaced, actor);
          }
        if (!isNew) return print(`Replaced the stored details of ${name} account ${account}.`);
        print(`Connected ${merchantId} with ${name} account ${account} (${mode})`);
        if (provider.secretNames?.includes('webhookSecret')) print(`  webhook path: /hooks/${connectionId}`);
      }),
    );

  accountCommand('test', 'Checks the key of a connected account with the provider.').action(
    (merchantId: string, name: string) =>
      withPayments(async ({ store, providers, encryption }) => {
        const provider = providerOf(providers, name);
        const { connectionId, account } = await currentOf(store, merchantId, name);
        const { secrets } = await accountReader(store, encryption)(connectionId);
        const found = await tried(provider.identify(secrets));
        if (found.account !== account) throw new StartError(`The key belongs to another account, ${found.account}.`);
        print(
          'look' in provider
            ? `The key of ${name} account ${account} works.`
            : `The details of ${name} account ${account} are valid. No connection to it could be tested.`,
        );
      }),
  );

  accountCommand(
    'disconnect',
    'Prevents new payments. The key is erased once open payments and refunds have ended.',
  ).action((merchantId: string, name: string) =>
    withPayments(async ({ store }) => {
      const { connectionId, account } = await currentOf(store, merchantId, name);
      await store.disconnect(connectionId, actor);
      print(`Disconnected ${merchantId} from ${name} account ${account}.`);
    }),
  );

  addRecordCommands(program, withPayments, { print, actor });
  return program;
}

/**
 * Returns the secrets of a connection after its key, the first secret, was replaced. Secrets that were not entered
 * stay, and so do the others of an earlier connection, whose webhook has a secret of its own.
 */
function keepSecrets(stored: Account['secrets'], entered: Account['secrets'], isCurrent: boolean): Account['secrets'] {
  const given = Object.entries(entered).filter(([, value]) => value !== '');
  return { ...Object.fromEntries(given), ...stored, ...Object.fromEntries(isCurrent ? given : given.slice(0, 1)) };
}

/** Adds the commands that show and erase what the checkout stores. */
function addRecordCommands(program: Command, withPayments: With<PaymentsDeps>, { print, actor }: Output): void {
  program
    .command('list')
    .description('Lists the connected accounts. Keys are never shown.')
    .argument('[CLIENT_ID]', 'only those of this merchant', parseClientId)
    .option('--json', jsonHelp)
    .action((merchantId: string | undefined, { json }: { json?: true }) =>
      withPayments(async ({ store }) => {
        const columns = { MERCHANT: 33, PROVIDER: 8, MODE: 4, ACCOUNT: 24, STATE: 0 };
        const { printRow, end } = startList(columns, json, print);
        for (const connection of await store.listConnections(merchantId)) {
          const { connectionId, merchantId: clientId, provider, mode, account, createdAt, disconnectedAt } = connection;
          const erased = hasKey(connection) ? '' : ', key erased';
          const state = disconnectedAt ? `disconnected ${displayTime(disconnectedAt)}${erased}` : 'connected';
          const times = { createdAt: createdAt.toISOString(), disconnectedAt: disconnectedAt?.toISOString() };
          const fields = { connectionId, clientId, provider, mode, account, hasKey: hasKey(connection), ...times };
          printRow(fields, clientId, provider, mode, account, state);
        }
        end('No account is connected.');
      }),
    );
  program
    .command('log')
    .description('Shows who connected, disconnected, assigned, erased and refunded what, oldest first.')
    .option('--json', jsonHelp)
    .action(({ json }: { json?: true }) =>
      withPayments(async ({ store }) => {
        const { printRow, end } = startList({ TIME: 23, ACTOR: 20, ACTION: 17, MERCHANT: 33, DETAILS: 0 }, json, print);
        for (const { at, actor: by, action, merchantId, details } of await store.actions()) {
          const shown = Object.entries(details).map(([detail, value]) => `${detail} ${value}`);
          const fields = { at: at.toISOString(), actor: by, action, merchantId, details };
          printRow(fields, displayTime(at), by, action, merchantId ?? '', shown.join(', '));
        }
        end('No account has been connected yet.');
      }),
    );
  program
    .command('erase')
    .description("Erases the digests of an order's payers. `orders erase` erases the order's own data at the gateway.")
    .argument('<ORDER_TOKEN>', 'the payment link of the order, or its order_token', parseToken)
    .action((orderToken: string) =>
      withPayments(async ({ store }) =>
        print(`Erased the digests of ${await openErasure(store).eraseOrder(orderToken, actor)} payers.`),
      ),
    );
}

/** Parses the client id of a merchant. A checkout system has no orders. */
export function parseClientId(text: string): string {
  if (merchantModeOf(text) !== undefined) return text;
  throw new UsageError('CLIENT_ID must be a client id shown by `merchant list`.');
}

/** Parses an order token or the payment link that contains it. */
export function parseToken(text: string): string {
  const token = parseOrderToken(tokenIn(text));
  if (token !== undefined) return token;
  throw new UsageError('ORDER_TOKEN must be a payment link or an order_token.');
}

function providerOf(providers: PaymentsDeps['providers'], name: string) {
  const offerings = offeringsOf(providers);
  const provider = offerings.get(name);
  const names = [...offerings.values()].filter(({ identify }) => identify).map((known) => known.name);
  if (provider?.identify === undefined) throw new UsageError(`PROVIDER must be one of: ${names.join(', ')}.`);
  return { ...provider, identify: provider.identify };
}

async function currentOf(store: Store, merchantId: string, provider: string): Promise<Connection> {
  const connections = await store.connectionsOf(merchantId);
  const current = connections.find((connection) => connection.provider === provider);
  if (current === undefined) throw new StartError(`${merchantId} is not connected with ${provider}.`);
  return current;
}

async function tried<Value>(call: Promise<Value>): Promise<Value> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(`The key could not be verified with the provider: ${messageOf(error)}.`);
  }
}
