import { Command } from 'commander';
import { run } from '../process.ts';
import { addEraseCommand, withErasure } from './erase-orders.ts';

await run(async () => {
  const program = new Command('pnpm orders').description('Works on stored orders.').showHelpAfterError();
  addEraseCommand(program, withErasure, (line) => process.stdout.write(`${line}\n`));
  await program.parseAsync();
});
