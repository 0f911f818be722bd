import { type ErasureTarget, eraseOrders } from '@gateway/postgres/erase-orders';
import type { Command } from 'commander';
import { erasureKeysOf } from '../erasure-keys.ts';
import { StartError } from '../process.ts';
import { findSecretsKeys } from '../webhooks/secrets-keys.ts';
import { actorOption, clientIdHelp, jsonHelp, parseClientId, parseTime, timeForm } from './merchant-commands.ts';
import { withDatabase } from './with-accounts.ts';

/** Erases orders, and returns how many. */
type Erase = (target: ErasureTarget) => Promise<number>;

/** Opens the database for an erasure, and closes it afterwards. `actor` is for the audit log. */
export function withErasure(work: (erase: Erase) => Promise<void>, actor?: string): Promise<void> {
  return withDatabase(async (url, config) => {
    const secretsKeys = await findSecretsKeys(config);
    if (secretsKeys === undefined)
      throw new StartError('Set SECRETS_KEY first: by it an erased order is recognised when it is sent again.');
    await work((target) => eraseOrders({ url, key: erasureKeysOf(secretsKeys)[0], actor }, target));
  });
}

interface EraseFlags {
  readonly email?: string;
  readonly before?: Date;
  readonly as?: string;
  readonly json?: true;
}

/** Adds the command `pnpm orders erase`. Wrong arguments reject with a {@link StartError} before the database is opened. */
export function addEraseCommand(
  program: Command,
  withErasure: (work: (erase: Erase) => Promise<void>, actor?: string) => Promise<void>,
  print: (line: string) => void,
): void {
  program
    .command('erase')
    .description("Erases the customers' data of orders, for good. Amounts, states and ids stay.")
    .argument('[CLIENT_ID]', clientIdHelp, parseClientId)
    .argument('[ORDER_ID]', 'the one order to erase')
    .option('--email <EMAIL>', 'all orders with this customer_email, of all merchants')
    .option('--before <TIME>', `all orders created before: ${timeForm}`, (text) => parseTime('--before', text))
    .addOption(actorOption())
    .option('--json', jsonHelp)
    .action((clientId: string | undefined, orderId: string | undefined, { as, json, ...flags }: EraseFlags) => {
      const target = targetOf(clientId, orderId, flags);
      return withErasure(async (erase) => {
        const count = await erase(target);
        if (json) print(JSON.stringify({ erased: count }));
        else if (count > 0) print(`Erased the customers' data of ${count} ${count === 1 ? 'order' : 'orders'}.`);
        else print('There is no such order, or its data is erased already.');
      }, as);
    });
}

function targetOf(
  clientId: string | undefined,
  orderId: string | undefined,
  { email, before }: EraseFlags,
): ErasureTarget {
  const targets: ErasureTarget[] = [];
  if (clientId !== undefined && orderId !== undefined) targets.push({ by: 'order', clientId, orderId });
  if (email !== undefined) targets.push({ by: 'email', email });
  if (before !== undefined) targets.push({ by: 'age', before });
  const [target, ...others] = targets;
  const isIncomplete = clientId !== undefined && orderId === undefined;
  if (target === undefined || others.length > 0 || isIncomplete)
    throw new StartError('Give one of: CLIENT_ID ORDER_ID, --email EMAIL, --before TIME.');
  return target;
}
