import { Command } from 'commander';
import manifest from '../../../package.json' with { type: 'json' };
import { helpColumns } from './columns.ts';

/** The width of help texts, and the narrowest column in them that Commander wraps. */
export const helpFormat = { helpWidth: helpColumns, minWidthToWrap: 24 } as const;

/** A command or one of its subcommands. */
class ProjectCommand extends Command {
  /** Creates a subcommand. Only a command that has some has help for them, which is a subcommand itself. */
  override createCommand(name?: string): Command {
    if (name !== 'help') this.helpCommand('help [command]', 'show the help of a command');
    return new ProjectCommand(name);
  }

  /**
   * Reports an unknown option before a missing one, because the unknown one may be the missing one misspelled.
   * Commander reports them the other way around.
   */
  override parseOptions(args: string[]) {
    const parsed = super.parseOptions(args);
    if (parsed.unknown.length > 0) for (const option of this.options) option.mandatory = false;
    return parsed;
  }
}

/**
 * Creates a command of this repository. Its help is at most 80 columns wide and describes `--help` as all commands do.
 * `--version` prints the version of the gateway. Subcommands added with `command()` have the same help, but no
 * `--version`.
 */
export function createCommand(name: string, description: string): Command {
  return new ProjectCommand(name)
    .description(description)
    .configureHelp(helpFormat)
    .helpOption('-h, --help', 'show this help')
    .version(manifest.version, '-V, --version', 'show the version');
}

/** Returns the help texts of a command and all of its subcommands, by the words that call them. */
export function helpTextsOf(command: Command, words = command.name()): readonly (readonly [string, string])[] {
  let text = '';
  command.configureOutput({
    writeOut: (part) => {
      text += part;
    },
  });
  command.outputHelp();
  const subcommands = command.commands.filter((subcommand) => subcommand.name() !== 'help');
  return [
    [words, text],
    ...subcommands.flatMap((subcommand) => helpTextsOf(subcommand, `${words} ${subcommand.name()}`)),
  ];
}
