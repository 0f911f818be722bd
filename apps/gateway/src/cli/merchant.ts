import { run } from '../start/process.ts';
import { merchantCommands } from './merchant-commands.ts';
import { print } from './output.ts';
import { addWebhookCommands, withWebhooks } from './webhook-commands.ts';
import { withAccounts } from './with-accounts.ts';

const program = merchantCommands(withAccounts, print);
addWebhookCommands(program, withWebhooks, print);
await run(() => program.parseAsync());
