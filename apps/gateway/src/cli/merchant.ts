import { print } from '@order-gateway/runtime/output';
import { run } from '@order-gateway/runtime/process';
import { addBrandCommand } from './merchant/brand-command.ts';
import { merchantCommands } from './merchant/merchant-commands.ts';
import { addWebhookCommands } from './merchant/webhook-commands.ts';
import { withOperator } from './operator.ts';
import { withAccounts } from './with-database.ts';

/** `merchant`. */
export const program = merchantCommands(withAccounts, print);
addBrandCommand(program, withOperator, print);
addWebhookCommands(program, withOperator, print);
if (import.meta.main) await run(() => program.parseAsync());
