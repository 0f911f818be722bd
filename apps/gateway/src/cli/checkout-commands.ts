import { lateDays } from '@order-gateway/domain/accounts';
import { Argument, type Command, Option } from 'commander';
import {
  clientIdHelp,
  createRecordedProgram,
  jsonHelp,
  lateDaysForm,
  nameOption,
  parseClientId,
  parseLateDays,
} from './arguments.ts';
import { credentialLines } from './new-secret.ts';
import { type OpenAccounts, settingChanger } from './with-database.ts';

/** Creates the commands of `checkout`. A checkout system's secrets are managed with `merchant secret`. */
export function checkoutCommands(openAccounts: OpenAccounts, print: (line: string) => void): Command {
  const description = 'Creates the accounts of checkout systems, which record the payments of all merchants.';
  const { program, withAccounts } = createRecordedProgram('checkout', description, openAccounts);
  const set = settingChanger(withAccounts, print, 'checkout system');
  program
    .command('create')
    .description('Creates a checkout system with its first client id and secret.')
    .addOption(nameOption('for the operator').makeOptionMandatory())
    .option('--customer-data', "gives it the customer's data of the orders that it claims; this can never be changed")
    .addOption(
      new Option('--late-days <NUMBER>', `how long it can report payments after an order's expiry, ${lateDaysForm}`)
        .argParser(parseLateDays)
        .default(lateDays.byDefault),
    )
    .option('--refunds', 'lets merchants refund its payments, because it makes the refunds')
    .option('--json', jsonHelp)
    .action(({ name, json, customerData, lateDays, refunds }: CheckoutOptions) =>
      withAccounts(
        async (accounts) => {
          const settings = { lateDays, getsCustomerData: customerData, makesRefunds: refunds };
          const { clientId, clientSecret } = await accounts.create(name, 'checkout', settings);
          if (json) return print(JSON.stringify({ name, client_id: clientId, client_secret: clientSecret }));
          print(`Created checkout system ${name}\n${credentialLines(clientId, clientSecret)}`);
        },
        // This can be the first command on a new database.
        { creates: true },
      ),
    );
  program
    .command('late-days')
    .description("Sets how long after an order's expiry a checkout system can report a payment that was made in time.")
    .argument('<CLIENT_ID>', clientIdHelp, parseClientId)
    .argument('<NUMBER>', lateDaysForm, parseLateDays)
    .action((clientId: string, days: number) => {
      const sentence = `${clientId} can now report payments for ${days} days after an order's expiry.`;
      return set(clientId, (accounts) => accounts.setLateDays(clientId, days), sentence);
    });
  program
    .command('refunds')
    .description('Sets whether merchants can refund the payments of a checkout system, because it makes the refunds.')
    .argument('<CLIENT_ID>', clientIdHelp, parseClientId)
    .addArgument(new Argument('<on|off>', 'off keeps the refunds that are pending').choices(['on', 'off']))
    .action((clientId: string, setting: 'on' | 'off') => {
      const sentence = `Merchants can ${setting === 'on' ? 'now' : 'no longer'} refund payments of ${clientId}.`;
      return set(clientId, (accounts) => accounts.setMakesRefunds(clientId, setting === 'on'), sentence);
    });
  return program;
}

interface CheckoutOptions {
  readonly name: string;
  readonly json?: true;
  readonly customerData?: true;
  readonly refunds?: true;
  readonly lateDays: number;
}
