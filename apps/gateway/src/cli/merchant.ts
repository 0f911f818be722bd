import { run } from '../process.ts';
import { addAccountCommands } from './account-commands.ts';
import { merchantCommands } from './merchant-commands.ts';
import { addWebhookCommands, withWebhooks } from './webhook-commands.ts';
import { print, withAccounts } from './with-accounts.ts';

const program = merchantCommands(withAccounts, print);
addAccountCommands(program, withAccounts, print);
addWebhookCommands(program, withWebhooks, print);
await run(() => program.parseAsync());
