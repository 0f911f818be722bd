import { run } from '../process.ts';
import { ordersCommands } from './orders-commands.ts';
import { withDatabase } from './with-accounts.ts';

await run(async () => {
  const print = (line: string) => process.stdout.write(`${line}\n`);
  await ordersCommands(withDatabase, print).parseAsync();
});
