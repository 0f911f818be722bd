import { formatAmount } from '@order-gateway/domain/money';
import { startList } from '@order-gateway/runtime/output';
import { StartError, UsageError } from '@order-gateway/runtime/process';
import type { Command } from 'commander';
import { type ImportDeps, openImport } from '../statements/import.ts';
import { StatementError } from '../statements/statement.ts';
import { jsonHelp, type Output, parseToken, type With } from './commands.ts';

const reasonsHelp = `
RECORDED: the order is paid. WAITING: another payment of the order is in
progress, or the gateway can't be reached; the checkout tries again each minute.
Read the file again to see the entry's later state, which can be LISTED.
OWED: it can't pay the order, so the merchant owes the money back. LISTED: a
person must check it. KNOWN: it was in an earlier file. MATCHED: it would be
recorded.`;

/** Adds the commands for statements of bank accounts to `payments`. */
export function addStatementCommands(program: Command, withImport: With<ImportDeps>, { print, actor }: Output): void {
  program
    .command('statement')
    .description('Reads camt.053, camt.054 or CSV files of a bank, and records the transfers that pay orders.')
    .argument('<FILE...>', 'the files, in any order')
    .option('--dry-run', 'change nothing, and show what would be done')
    .option('--json', jsonHelp)
    .addHelpText('after', reasonsHelp)
    .action((files: readonly string[], { dryRun = false, json }: { dryRun?: boolean; json?: true }) =>
      withImport(async (deps) => {
        const statements = openImport(deps);
        const columns = { STATE: 8, ENTRY: 8, DATE: 10, AMOUNT: 16, ORDER: 20, REASON: 20, PAYER: 0 };
        const { printRow, end } = startList(columns, json, print);
        const rejected: string[] = [];
        for (const file of files)
          try {
            for await (const outcome of statements.importFile(file, dryRun)) {
              const { credit, creditId, state, reason = '', orderId = '' } = outcome;
              const amount = credit.amount === undefined ? '' : `${formatAmount(credit.amount)} ${credit.currency}`;
              const entry = `${creditId ?? ''}`;
              const fields = { file, state, entry, date: credit.date, amount, orderId, reason, payer: credit.payer };
              printRow(fields, state, entry, credit.date, amount, orderId, reason, credit.payer);
            }
          } catch (error) {
            if (!(error instanceof StatementError)) throw error;
            rejected.push(`${file}: ${error.message} No part of this file was used.`);
          }
        if (rejected.length === 0) end('The files contain no credits.');
        const missing = (await statements.withGapBefore()).map(
          ({ account, number }) => `Statement ${Number(number) - 1} of the account ${account} is missing.`,
        );
        if (rejected.length + missing.length > 0) throw new StartError([...rejected, ...missing].join('\n'));
      }),
    );

  program
    .command('assign')
    .description('Records a listed entry of a statement as the payment of an order.')
    .argument('<ENTRY>', 'its number in the output of `payments statement`', parseEntry)
    .argument('<ORDER_TOKEN>', 'the payment link of the order, or its order_token', parseToken)
    .action((creditId: number, orderToken: string) =>
      withImport(async (deps) => {
        const { state, reason, orderId } = await openImport(deps).assign(creditId, orderToken, actor);
        if (state === 'KNOWN') throw new StartError(`Entry ${creditId} was reported before: ${reason}.`);
        if (state === 'WAITING')
          return print(`Entry ${creditId} waits: ${reason}. The checkout tries again each minute.`);
        if (state !== 'RECORDED')
          throw new StartError(`Entry ${creditId} was not recorded: ${state === 'OWED' ? 'owed, ' : ''}${reason}.`);
        print(`Recorded entry ${creditId} as the payment of the order ${orderId}.`);
      }),
    );
}

function parseEntry(text: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new UsageError('ENTRY must be a number shown by `payments statement`.');
}
