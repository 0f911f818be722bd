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
  'typecheck:root': 'Checks the types of the configuration in the root folder.',
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

/** Returns the first sentence in the help text of a script's program, or the description of the command. */
async function describeCommand(name: string, script: string): Promise<string> {
  const [, file] = /^node .*?(apps\/\w+\/src\/\S+)$/.exec(script) ?? [];
  if (file === undefined) return descriptions[name] ?? script;
  const { stdout } = await promisify(execFile)(process.execPath, [file, '--help']);
  const [, paragraph = ''] = stdout.split('\n\n');
  return /^.*?\.(?=\s|$)/.exec(paragraph.replaceAll(/\s+/g, ' '))?.[0] ?? paragraph;
}

const { scripts } = manifest;
const commands = Object.entries(scripts).filter(([name]) => !name.startsWith('pnpm:') && !(name.slice(3) in scripts));
for (const [name, script] of commands) {
  process.stdout.write(`${name.padEnd(18)}${await describeCommand(name, script)}\n`);
}
