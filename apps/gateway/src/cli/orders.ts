import { createReadStream, createWriteStream } from 'node:fs';
import { lstat, rename, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { tokenIn } from '@order-gateway/domain/links';
import {
  countErasableOrders,
  type ErasureTarget,
  eraseOrders,
  exportOrders,
  failRefund,
  findOrderHistories,
  importOrders,
  listRefusedPayments,
  type OrderHistory,
  releasePayment,
} from '@order-gateway/postgres/orders/operators';
import { displayTime, print, snakeCased, startList } from '@order-gateway/runtime/output';
import { run, StartError, UsageError } from '@order-gateway/runtime/process';
import { findSecretsKeys } from '@order-gateway/runtime/secrets-keys';
import { Option } from 'commander';
import { erasureKeysOf } from '../runtime/secrets/signing-secrets.ts';
import {
  actorOption,
  clientIdHelp,
  createProgram,
  jsonHelp,
  parseClientId,
  parseCount,
  parseTime,
  timeForm,
} from './arguments.ts';
import { withDatabase } from './with-database.ts';

// The commands of `orders`. They report errors in the same way as those of `merchant`.

/** The number of refused payments that are listed by default. */
const defaultRefusals = 100;

const fileHelp = 'one order per line, as JSON; compressed with gzip if its name ends with .gz';

/** `orders`. */
export const program = createProgram(
  'orders',
  'Shows, archives, restores and erases orders, lists refused payments, and ends claims and refunds.',
);

program
  .command('export')
  .description('Writes all orders of a period to a file that only its owner can read. Deletes nothing.')
  .argument('<FILE>', fileHelp)
  .requiredOption('--before <TIME>', `orders created before: ${timeForm}`, parseTime('--before'))
  .option('--from <TIME>', 'orders created from this time on (default: all)', parseTime('--from'))
  .action(async (file: string, { from, before }: { from?: Date; before: Date }) => {
    // The export would replace it: as root, even the link /dev/stdout.
    if ((await lstat(file).catch(() => undefined))?.isFile() === false)
      throw new UsageError('FILE exists, and is not a regular file.');
    await withDatabase(async (url) => {
      const pages = exportOrders(url, { fromMs: from?.getTime() ?? 0, beforeMs: before.getTime() });
      print(`Wrote ${await writeOrders(file, pages)} orders to ${file}`);
    });
  });

program
  .command('import')
  .description('Restores the orders of a file. Existing orders stay unchanged.')
  .argument('<FILE>', fileHelp)
  .action((file: string) =>
    withDatabase(async (url) => {
      const { restored, existing } = await importOrders(url, linesOf(file));
      print(`Restored ${restored} orders; ${existing} already existed`);
    }),
  );

program
  .command('show')
  .description(
    "Shows an order with its history and webhooks, without the customer's data. Find rejected calls in the log by order_id.",
  )
  .argument('<ORDER>', 'its order_id, service_order_id, payment link or order_token')
  .option('--json', jsonHelp)
  .action((text: string, { json }: { json?: true }) =>
    withDatabase(async (url) => {
      const histories = await findOrderHistories(url, tokenIn(text));
      if (histories.length === 0) throw new StartError('There is no such order.');
      for (const history of histories) print(json ? snakeCased(history) : describeOrder(history));
    }),
  );

program
  .command('refused')
  .description('Lists refused payments of all orders, newest first. Checkout systems must refund them.')
  .addOption(new Option('--limit <NUMBER>', 'how many').argParser(parseCount).default(defaultRefusals))
  .option('--open', 'only those whose refund has not been recorded yet, oldest first')
  .option('--json', jsonHelp)
  .action(({ limit, open, json }: { limit: number; open?: true; json?: true }) =>
    withDatabase(async (url) => {
      const columns = {
        REFUSED: 23,
        REFUNDED: 23,
        CODE: 18,
        AMOUNT: 20,
        'PAYMENT ID': 32,
        CHECKOUT: 28,
        MERCHANT: 33,
        'ORDER ID': 0,
      };
      const { printRow, end } = startList(columns, json, print);
      for (const payment of await listRefusedPayments(url, limit, open)) {
        const { refusedAt, refundedAt, code, amount, currency, paymentId, checkoutClientId, clientId, orderId } =
          payment;
        const checkout = checkoutClientId ?? 'simulated';
        printRow(
          payment,
          displayTime(refusedAt),
          refundedAt === null ? '' : displayTime(refundedAt),
          code,
          `${amount} ${currency}`,
          paymentId,
          checkout,
          clientId,
          orderId,
        );
      }
      end(open ? 'No refused payment is owed.' : 'There are no refused payments.');
    }),
  );

program
  .command('release')
  .description('Ends the claim of a payment attempt on an order. Does not undo a payment that the attempt took.')
  .argument('<ORDER_TOKEN>', 'the payment link of the order, or its order_token')
  .addOption(actorOption())
  .action((text: string, { as: actor }: { as?: string }) =>
    withDatabase(async (url) => {
      const outcome = await releasePayment({ url, actor }, tokenIn(text));
      if (outcome.kind === 'unknown') throw new StartError('There is no such order.');
      if (outcome.kind === 'unclaimed') throw new StartError('No payment is in progress for this order.');
      const { attemptId, orderId } = outcome;
      print(`Ended the payment attempt ${attemptId}. The order ${orderId} is no longer claimed.`);
      print('If the attempt took money, the checkout system must still record it, or refund it.');
    }),
  );

program
  .command('refund-fail')
  .description(
    'Ends a pending refund as FAILED, because its checkout system will never make it. The amount can be refunded again.',
  )
  .argument('<ORDER_TOKEN>', 'the payment link of the order, or its order_token')
  .argument('<REFUND_ID>', "the merchant's refund_id")
  .addOption(actorOption())
  .action((text: string, refundId: string, { as: actor }: { as?: string }) =>
    withDatabase(async (url) => {
      const outcome = await failRefund({ url, actor }, tokenIn(text), refundId);
      if (outcome !== 'failed') throw new StartError(failureTexts[outcome]);
      print(`Ended the refund ${refundId} as FAILED.`);
      print('If the checkout system still makes it, that is recorded as another refund.');
    }),
  );

const failureTexts = {
  unknown: 'There is no such order.',
  not_pending: 'The order has no pending refund with this refund_id.',
  known_to_provider: 'The provider has this refund. Cancel it there; the checkout system then reports that it failed.',
};

interface EraseFlags {
  readonly email?: string;
  readonly before?: Date;
  readonly dryRun?: true;
  readonly as?: string;
  readonly json?: true;
}

program
  .command('erase')
  .description("Erases the customers' data of orders permanently. Amounts, states and ids stay.")
  .argument('[CLIENT_ID]', clientIdHelp, parseClientId)
  .argument('[ORDER_ID]', 'the one order to erase')
  .option('--email <EMAIL>', 'all orders with this customer_email, of all merchants')
  .option('--before <TIME>', `all orders created before: ${timeForm}`, parseTime('--before'))
  .option('--dry-run', 'only counts the orders that would be erased')
  .addOption(actorOption())
  .option('--json', jsonHelp)
  .action((clientId: string | undefined, orderId: string | undefined, { as: actor, json, ...flags }: EraseFlags) => {
    const target = erasureTargetOf(clientId, orderId, flags);
    return withDatabase(async (url, config) => {
      if (flags.dryRun) {
        const count = await countErasableOrders(url, target);
        return print(json ? JSON.stringify({ erasable: count }) : `Orders that would be erased: ${count}.`);
      }
      const secretsKeys = await findSecretsKeys(config);
      if (secretsKeys === undefined)
        throw new StartError('Set SECRETS_KEY first: it recognizes an erased order that is sent again.');
      const count = await eraseOrders({ url, key: erasureKeysOf(secretsKeys)[0], actor }, target);
      if (json) print(JSON.stringify({ erased: count }));
      else if (count > 0) print(`Erased the customers' data of ${count} ${count === 1 ? 'order' : 'orders'}.`);
      else print('There is no such order, or its data has already been erased.');
    });
  });

if (import.meta.main) await run(() => program.parseAsync());

/**
 * Writes the lines to a file and returns their number. The file has a temporary name until it is complete and on disk,
 * so that a partial export is not mistaken for a complete one.
 */
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
  try {
    await pipeline([Readable.from(text()), ...(file.endsWith('.gz') ? [createGzip()] : []), output]);
  } catch (error) {
    // It has customer data, and may fill the disk.
    await rm(draft, { force: true });
    throw error;
  }
  await rename(draft, file);
  return count;
}

async function* linesOf(file: string): AsyncGenerator<string> {
  const bytes = createReadStream(file);
  let rest = '';
  // Does not use readline, which would also split lines at U+2028.
  for await (const chunk of (file.endsWith('.gz') ? bytes.compose(createGunzip()) : bytes).setEncoding('utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') throw new StartError(`${file} is incomplete: its last line does not end with a newline.`);
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
  const [target, ...furtherTargets] = targets;
  const isIncomplete = clientId !== undefined && orderId === undefined;
  if (target === undefined || furtherTargets.length > 0 || isIncomplete)
    throw new UsageError('Pass one of: CLIENT_ID ORDER_ID, --email EMAIL, --before TIME.');
  return target;
}

function describeOrder({ order, refusedPayments, refunds, disputes, events }: OrderHistory): string {
  const { createdAt, expiresAt, paymentId, leaseEndsAt } = order;
  const history = [
    [createdAt, 'created'],
    ...events.map(({ createdAt, type, delivery }) => [createdAt, `${type}  ${describeDelivery(delivery)}`] as const),
    ...(order.orderStatus === 'UN_PAID' && expiresAt !== null ? [[expiresAt, 'expires'] as const] : []),
  ] as const;
  return [
    `order_id          ${order.orderId}`,
    `service_order_id  ${order.serviceOrderId}`,
    `merchant          ${order.clientId}  ${order.merchantName}`,
    `order_status      ${order.orderStatus}`,
    `order_amount      ${order.orderAmount} ${order.orderCurrency}`,
    ...(paymentId === null ? [] : [`payment_id        ${paymentId}`]),
    ...(leaseEndsAt === null ? [] : [`in progress until ${displayTime(leaseEndsAt)}`]),
    ...refusedPayments.map(
      ({ paymentId, amount, currency, code, refusedAt, refundedAt }) =>
        `refused payment   ${paymentId}  ${amount} ${currency}  ${code}  ${displayTime(refusedAt)}${refundedAt === null ? '' : `, refunded ${displayTime(refundedAt)}`}`,
    ),
    ...refunds.map((refund) => `refund            ${refund.refundId}  ${describeReversal(refund)}`),
    ...disputes.map((dispute) => `dispute           ${dispute.disputeId}  ${describeReversal(dispute)}`),
    ...history.map(([time, text]) => `${displayTime(time)}  ${text}`),
    '',
  ].join('\n');
}

function describeReversal(reversal: OrderHistory['refunds' | 'disputes'][number]): string {
  const { paymentId, amount, currency, status, reason, updatedAt } = reversal;
  const result = reason === null ? status : `${status} (${reason})`;
  return `${amount} ${currency} of ${paymentId}  ${result}  ${displayTime(updatedAt)}`;
}

function describeDelivery(delivery: OrderHistory['events'][number]['delivery']): string {
  if (delivery === null) return 'no webhook';
  const { attempts, lastResult, deliveredAt, nextAttemptAt } = delivery;
  const result = `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}${lastResult === null ? '' : `, last result: ${lastResult}`}`;
  if (deliveredAt !== null) return `webhook delivered ${displayTime(deliveredAt)} (${result})`;
  if (nextAttemptAt === null) return `webhook given up (${result})`;
  return `webhook due ${displayTime(nextAttemptAt)} (${result})`;
}
