import type { Command } from 'commander';
import { expect, test } from 'vitest';
import manifest from '../../../package.json' with { type: 'json' };
import { createCommand } from './command.ts';

/** Runs a command. Returns what it prints and the code of the error that ends it. */
function run(command: Command, ...args: string[]): { readonly printed: string; readonly code: string } {
  let printed = '';
  const write = (text: string) => {
    printed += text;
  };
  for (const part of [command, ...command.commands])
    part.exitOverride().configureOutput({ writeOut: write, writeErr: write });
  try {
    command.parse(args, { from: 'user' });
    return { printed, code: '' };
  } catch (error) {
    return { printed, code: String(Reflect.get(Object(error), 'code')) };
  }
}

function sample(): Command {
  const command = createCommand('pnpm sample', 'Does something.');
  command
    .command('pay')
    .description('Pays.')
    .argument('<ID>')
    .requiredOption('--amount <N>', 'the amount')
    .action(() => {});
  return command;
}

test('an unknown option is reported before a missing option and a missing argument, with a suggestion', () => {
  const { printed, code } = run(sample(), 'pay', '--amuont', '1');
  expect([printed, code]).toEqual([
    "error: unknown option '--amuont'\n(Did you mean --amount?)\n",
    'commander.unknownOption',
  ]);
  expect(run(sample(), 'pay', 'x').code).toBe('commander.missingMandatoryOptionValue');
  expect(run(sample(), 'pay', '--amount', '1').code).toBe('commander.missingArgument');
  expect(run(sample(), 'pay', 'x', '--amount', '1')).toEqual({ printed: '', code: '' });
});

test('--help and --version print their texts', () => {
  expect(run(sample(), '--version')).toEqual({ printed: `${manifest.version}\n`, code: 'commander.version' });
  expect(run(sample(), '--help').printed).toContain('show this help');
  expect(run(sample(), 'pay', '--help').printed).toContain('show this help');
});

test('only a command with subcommands has help for them', () => {
  expect(run(sample(), '--help').printed).toMatch(/help \[command\] +show the help of a command/);
  expect(run(sample(), 'pay', '--help').printed).not.toContain('help [command]');
  expect(run(createCommand('sample', 'Has no subcommands.'), '--help').printed).not.toContain('help [command]');
});
