import { Command } from 'commander';
import { addArchiveCommands } from './export-orders.ts';
import type { withDatabase } from './with-accounts.ts';

/** The commands of `pnpm orders`. Errors are as with those of `pnpm merchant`. */
export function ordersCommands(withUrl: typeof withDatabase, print: (line: string) => void): Command {
  const program = new Command('pnpm orders').description('Archives and restores orders.').showHelpAfterError();
  addArchiveCommands(program, withUrl, print);
  return program;
}
