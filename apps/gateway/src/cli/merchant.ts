import { run } from '../process.ts';
import { addAccountCommands } from './account-commands.ts';
import { merchantCommands } from './merchant-commands.ts';
import { addWebhookCommands, withWebhooks } from './webhook-commands.ts';
import { withAccounts } from './with-accounts.ts';

await run(async () => {
  const print = (line: string) => process.stdout.write(`${line}\n`);
  const program = merchantCommands(withAccounts, print);
  addAccountCommands(program, withAccounts, print);
  addWebhookCommands(program, withWebhooks, print);
  await program.parseAsync();
});
