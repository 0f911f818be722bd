// Prints each command of package.json with the first sentence of its help, or its script if it has no help text.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import manifest from '../package.json' with { type: 'json' };

/** Returns the description in the help of a script's program, or the script if it runs another tool. */
async function describeScript(script: string): Promise<string> {
  const [, file] = /^node .*?(apps\/\w+\/src\/\S+)$/.exec(script) ?? [];
  if (file === undefined) return script;
  const { stdout } = await promisify(execFile)(process.execPath, [file, '--help']);
  const [, paragraph = ''] = stdout.split('\n\n');
  return /^.*?\.(?=\s|$)/.exec(paragraph.replaceAll(/\s+/g, ' '))?.[0] ?? paragraph;
}

const { scripts } = manifest;
const commands = Object.entries(scripts).filter(([name]) => !name.startsWith('pnpm:') && !(name.slice(3) in scripts));
for (const [name, script] of commands) {
  process.stdout.write(`${name.padEnd(18)}${await describeScript(script)}\n`);
}
