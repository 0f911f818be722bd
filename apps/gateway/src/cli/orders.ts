import { createReadStream, createWriteStream } from 'node:fs';
import { rename } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { type ErasureTarget, eraseOrders } from '@gateway/postgres/erase-orders';
import { exportOrders, importOrders } from '@gateway/postgres/order-archive';
import { Command } from 'commander';
import { run, StartError } from '../process.ts';
import { erasureKeysOf } from '../signing-secrets.ts';
import { findSecretsKeys } from '../webhooks/secrets-keys.ts';
import { actorOption, clientIdHelp, jsonHelp, parseClientId, parseTime, timeForm } from './arguments.ts';
import { print } from './output.ts';
import { withDatabase } from './with-accounts.ts';

// The commands of `pnpm orders`. Errors are as with those of `pnpm merchant`.

const fileHelp = 'one order a line, as JSON; compressed with gzip if its name ends with .gz';

const program = new Command('pnpm orders').description('Archives, restores and erases orders.').showHelpAfterError();

program
  .command('export')
  .description('Writes all orders of a time to a file that only its owner can read. Deletes nothing.')
  .argument('<FILE>', fileHelp)
  .requiredOption('--before <TIME>', `orders created before: ${timeForm}`, parseTime('--before'))
  .option('--from <TIME>', 'orders created from this time on (default: all)', parseTime('--from'))
  .action((file: string, { from, before }: { from?: Date; before: Date }) =>
    withDatabase(async (url) => {
      const pages = exportOrders(url, { fromMs: from?.getTime() ?? 0, beforeMs: before.getTime() });
      print(`Wrote ${await writeOrders(file, pages)} orders to ${file}`);
    }),
  );

program
  .command('import')
  .description('Restores the orders of a file. An order that is there already stays as it is.')
  .argument('<FILE>', fileHelp)
  .action((file: string) =>
    withDatabase(async (url) => {
      const { restored, existing } = await importOrders(url, linesOf(file));
      print(`Restored ${restored} orders; ${existing} were there already`);
    }),
  );

interface EraseFlags {
  readonly email?: string;
  readonly before?: Date;
  readonly as?: string;
  readonly json?: true;
}

program
  .command('erase')
  .description("Erases the customers' data of orders, for good. Amounts, states and ids stay.")
  .argument('[CLIENT_ID]', clientIdHelp, parseClientId)
  .argument('[ORDER_ID]', 'the one order to erase')
  .option('--email <EMAIL>', 'all orders with this customer_email, of all merchants')
  .option('--before <TIME>', `all orders created before: ${timeForm}`, parseTime('--before'))
  .addOption(actorOption())
  .option('--json', jsonHelp)
  .action((clientId: string | undefined, orderId: string | undefined, { as: actor, json, ...flags }: EraseFlags) => {
    const target = erasureTargetOf(clientId, orderId, flags);
    return withDatabase(async (url, config) => {
      const secretsKeys = await findSecretsKeys(config);
      if (secretsKeys === undefined)
        throw new StartError('Set SECRETS_KEY first: by it an erased order is recognised when it is sent again.');
      const count = await eraseOrders({ url, key: erasureKeysOf(secretsKeys)[0], actor }, target);
      if (json) print(JSON.stringify({ erased: count }));
      else if (count > 0) print(`Erased the customers' data of ${count} ${count === 1 ? 'order' : 'orders'}.`);
      else print('There is no such order, or its data is erased already.');
    });
  });

await run(() => program.parseAsync());

/** Under another name until it is complete and on disk, so that nobody takes half an export for one. */
async function writeOrders(file: string, pages: AsyncIterable<readonly string[]>): Promise<number> {
  let count = 0;
  const text = async function* () {
    for await (const lines of pages) {
      count += lines.length;
      yield lines.map((line) => `${line}\n`).join('');
    }
  };
  const draft = `${file}.part`;
  const output = createWriteStream(draft, { mode: 0o600, flush: true });
  await pipeline([Readable.from(text()), ...(file.endsWith('.gz') ? [createGzip()] : []), output]);
  await rename(draft, file);
  return count;
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const bytes = createReadStream(file);
  let rest = '';
  // Not by readline, which splits at U+2028, too.
  for await (const chunk of (file.endsWith('.gz') ? bytes.compose(createGunzip()) : bytes).setEncoding('utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') throw new StartError(`${file} is not complete: its last line has no end.`);
}

function erasureTargetOf(
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
