import { print } from '@order-gateway/runtime/output';
import { run } from '@order-gateway/runtime/process';
import { checkoutCommands } from './merchant-commands.ts';
import { withAccounts } from './with-database.ts';

await run(() => checkoutCommands(withAccounts, print).parseAsync());
