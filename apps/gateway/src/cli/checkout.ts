import { run } from '../process.ts';
import { checkoutCommands } from './merchant-commands.ts';
import { withAccounts } from './with-accounts.ts';

await run(async () => {
  const print = (line: string) => process.stdout.write(`${line}\n`);
  await checkoutCommands(withAccounts, print).parseAsync();
});
