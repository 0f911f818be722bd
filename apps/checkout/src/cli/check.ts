import { startList } from '@order-gateway/runtime/output';
import { StartError, UsageError } from '@order-gateway/runtime/process';
import type { Command } from 'commander';
import { comparePayments } from '../attempts/compare.ts';
import { hasKey } from '../providers/accounts.ts';
import { ProviderError } from '../providers/provider.ts';
import { type GatewayDeps, jsonHelp, parseClientId, type With } from './commands.ts';

const differencesHelp = `
unknown_attempt: the provider took money for a payment that the checkout does
not know. not_recorded: the provider took money, but the order is not paid
with it. amount_differs: the recorded amount is different. not_captured,
missing_at_provider: the provider does not have the money of a recorded payment.
not_paid_at_gateway: the order of a recorded payment is not paid, or is lost.
The checkout makes the same comparison each day, and repairs what it can.`;

/** Adds the command that compares payments to `pnpm payments`. */
export function addCheckCommand(program: Command, withCheck: With<GatewayDeps>, print: (line: string) => void): void {
  program
    .command('check')
    .description("Compares the providers' payments with the recorded ones, in both directions. Changes nothing.")
    .argument('[CLIENT_ID]', 'only those of this merchant', parseClientId)
    .option('--days <N>', 'the payments of the last N days, 1 to 180', parseDays, 7)
    .option('--json', jsonHelp)
    .addHelpText('after', differencesHelp)
    .action((merchantId: string | undefined, { days, json }: { days: number; json?: true }) =>
      withCheck(async (deps) => {
        const since = new Date(Date.now() - days * 86_400_000);
        const { printRow, end } = startList({ DIFFERENCE: 19, PAYMENT: 30, ATTEMPT: 26, ORDER: 0 }, json, print);
        let count = 0;
        const problems: string[] = [];
        const connections = (await deps.store.listConnections(merchantId)).filter(
          (connection) => hasKey(connection) && deps.providers.has(connection.provider),
        );
        for (const connection of connections)
          try {
            for await (const found of comparePayments(deps, connection, since)) {
              const { difference, paymentId = '', attemptId, orderId = '' } = found;
              count += 1;
              printRow(found, difference, paymentId, attemptId, orderId);
            }
          } catch (error) {
            // A merchant may have revoked the key.
            if (!(error instanceof ProviderError)) throw error;
            problems.push(`The payments of ${connection.merchantId} could not be compared: ${error.message}.`);
          }
        const isCompared = connections.length > problems.length;
        end(isCompared ? 'All compared payments agree.' : 'No account is connected whose payments could be compared.');
        if (count > 0) problems.push(`${count} payments differ.`);
        if (problems.length > 0) throw new StartError(problems.join('\n'));
      }),
    );
}

function parseDays(text: string): number {
  if (/^[1-9]\d{0,2}$/.test(text) && Number(text) <= 180) return Number(text);
  throw new UsageError('--days must be a number from 1 to 180.');
}
