import { Command } from 'commander';
import { addEraseCommand, withErasure } from './erase-orders.ts';
import { addArchiveCommands } from './export-orders.ts';
import type { withDatabase } from './with-accounts.ts';

/** The commands of `pnpm orders`. Errors are as with those of `pnpm merchant`. */
export function ordersCommands(withUrl: typeof withDatabase, print: (line: string) => void): Command {
  const program = new Command('pnpm orders').description('Archives, restores and erases orders.').showHelpAfterError();
  addArchiveCommands(program, withUrl, print);
  addEraseCommand(program, withErasure, print);
  return program;
}
