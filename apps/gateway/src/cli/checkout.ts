import { run } from '../start/process.ts';
import { checkoutCommands } from './merchant-commands.ts';
import { print } from './output.ts';
import { withAccounts } from './with-database.ts';

await run(() => checkoutCommands(withAccounts, print).parseAsync());
