import { print } from '@order-gateway/runtime/output';
import { run } from '@order-gateway/runtime/process';
import { checkoutCommands } from './checkout-commands.ts';
import { withAccounts } from './with-database.ts';

/** `checkout`. */
export const program = checkoutCommands(withAccounts, print);
if (import.meta.main) await run(() => program.parseAsync());
