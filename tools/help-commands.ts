// Prints each command of package.json with a description in one sentence.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import manifest from '../package.json' with { type: 'json' };

/** The descriptions of the commands whose programs have no help text. */
const descriptions: Readonly<Record<string, string>> = {
  screenshots: 'Takes pictures of the payment page in every state, size, colour scheme and language.',
  dist: 'Builds the files of a release.',
  'help-commands': 'Describes every command in one line.',
  freeze: 'Stores the contract that a release promises, for the tests of later versions.',
  lint: 'Checks the format and the rules of the code.',
  unused: 'Finds code, files and dependencies that nothing uses.',
  typecheck: 'Checks the types of all packages.',
  repository: 'Tests the layout, the imports and the commands of the repository.',
  commits: 'Checks the subjects of all commits.',
  turbo: 'Runs a task, such as test, in one or all packages, and skips what has not changed.',
  test: 'Runs everything that CI runs.',
  'test:unit': 'Runs the unit tests.',
  'test:slow': 'Runs the soak tests and the long fuzz runs.',
  'test:faults': 'Injects faults into the gateway and PostgreSQL.',
  'test:cost': 'Prints the CPU time of a command and its processes, by kind.',
  'test:mutation': 'Changes the code in one place at a time, and counts the changes that no test detects.',
};

/** The programs that export their command, so that its help text needs no process. */
export const isCli = (file: string) => file.includes('/cli/');

/** Returns the file of a script's program, or `undefined` if the script runs no program with a help text. */
export const programOf = (script: string): string | undefined => /^node .*?(apps\/\w+\/src\/\S+)$/.exec(script)?.[1];

const helpTexts = new Map<string, Promise<string>>();

/** Returns the output of a program with `--help`. Starts each program once. */
export function helpOf(file: string): Promise<string> {
  return helpTexts.getOrInsertComputed(file, async () => {
    if (isCli(file)) return (await import(/* @vite-ignore */ `../${file}`)).program.helpInformation();
    const { PATH, NODE_COMPILE_CACHE } = process.env;
    // The other variables are omitted, so that the terminal does not determine the width.
    const env = { PATH, NODE_COMPILE_CACHE };
    return (await promisify(execFile)(process.execPath, [file, '--help'], { env })).stdout;
  });
}

/** Returns the first sentence in the help text of a script's program, or the description of the command. */
async function describeCommand(name: string, script: string): Promise<string> {
  const file = programOf(script);
  if (file === undefined) return descriptions[name] ?? script;
  const [, paragraph = ''] = (await helpOf(file)).split('\n\n');
  return /^.*?\.(?=\s|$)/.exec(paragraph.replaceAll(/\s+/g, ' '))?.[0] ?? paragraph;
}

/** Returns a line for each command of package.json. */
export async function describeCommands(): Promise<string[]> {
  const { scripts } = manifest;
  const commands = Object.entries(scripts).filter(([name]) => !name.startsWith('pnpm:') && !(name.slice(3) in scripts));
  const lines: string[] = [];
  for (const [name, script] of commands) lines.push(`${name.padEnd(18)}${await describeCommand(name, script)}`);
  return lines;
}

if (import.meta.main) process.stdout.write(`${(await describeCommands()).join('\n')}\n`);
