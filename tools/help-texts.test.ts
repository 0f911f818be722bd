import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { helpTextsOf } from '../packages/command/src/command.ts';
import { describeCommands, helpOf, isCli, programOf } from './help-commands.ts';
import { waitLimitMs } from './test-limits.ts';

const clientCommand = 'order-gateway-client';

/**
 * The files of programs with a help text, by the name in their usage: scripts of package.json, and the client's
 * command.
 */
const programs = new Map([
  ...Object.entries(manifest.scripts).flatMap(([name, script]): [string, string][] => {
    const file = programOf(script);
    return file === undefined ? [] : [[name, file]];
  }),
  [clientCommand, 'packages/client/src/cli.ts'],
]);

/** The programs that read their arguments without Commander. */
const parseThemselves = ['start', clientCommand];

async function run(file: string, args: readonly string[]) {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  // The other variables are omitted, so that the terminal does not determine the width. No program can open this
  // database.
  const env = { PATH, NODE_COMPILE_CACHE, DATABASE_URL: 'postgres://127.0.0.1:1/none' };
  const running = promisify(execFile)(process.execPath, [file, ...args], { env, timeout: waitLimitMs });
  return running.then(
    (output) => ({ code: 0, ...output }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  );
}

/** Returns the names and the help texts of a command and its subcommands. */
async function helpTexts(name: string, file: string): Promise<readonly (readonly [string, string])[]> {
  if (isCli(file)) return helpTextsOf((await import(/* @vite-ignore */ `../${file}`)).program);
  return [[name, await helpOf(file)]];
}

test('the README lists every command', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const [, list = ''] = /COMMAND --help` for each command: ((?:`[\w-]+`[,.]\s+)+)/.exec(readme) ?? [];
  const listed = [...list.matchAll(/`([\w-]+)`/g)].map(([, name]) => name);
  expect([...listed, clientCommand].toSorted()).toEqual([...programs.keys()].toSorted());
});

test('help-commands describes every command in a sentence', async () => {
  const commands = Object.keys(manifest.scripts).filter((name) => !/^(pnpm:|pre)/.test(name));
  const lines = await describeCommands();
  for (const line of lines) expect(line).toMatch(/^\S+ +[A-Z].*\.$/);
  expect(lines.map((line) => line.split(' ', 1)[0])).toEqual(expect.arrayContaining(commands));
});

test.each([...programs])(
  '%s has help texts in the common form, prints the version of the release, and rejects unknown options',
  async (name, file) => {
    const texts = await helpTexts(name, file);
    for (const [command, text] of texts) {
      expect(text, command).toMatch(new RegExp(`^Usage: ${command}\\b`));
      expect(text, command).toMatch(/^ {2}-h, --help +show this help$/m);
      expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
      // Commands, arguments and options are indented by two spaces. Continuation lines are indented further.
      const undescribed = /^ {2}(?:\S+ )*\S+$(?!\n {3,})/gm;
      for (const [section] of text.matchAll(/^(?:Commands|Arguments|Options):\n(?: .*\n)+/gm))
        expect(section.match(undescribed), command).toBeNull();
      const [usage = ''] = text.split('\n', 1);
      const position = [...usage.matchAll(/[<[]([A-Z_]+)[>\]]/g)].findIndex(([, argument]) => argument === 'CLIENT_ID');
      expect(position, command).toBeLessThanOrEqual(0);
    }
    const [[, help] = ['', '']] = texts;
    expect(help).toMatch(/^ {2}-V, --version +show the version$/m);
    expect(help).toMatch(/^Exit codes: 0 /m);
    // The other programs get this option from `createCommand`, whose tests print the version.
    if (parseThemselves.includes(name))
      expect(await run(file, ['--version'])).toEqual({ code: 0, stdout: `${manifest.version}\n`, stderr: '' });
    // An unknown option is reported even if an argument or another option is missing.
    const [last = name] = texts.at(-1) ?? [];
    const path = last.slice(name.length).split(' ').filter(Boolean);
    const { code, stderr } = await run(file, [...path, '--wrong']);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/^(?:error: unknown|Unknown) (?:option|argument) '?--wrong/),
    ]);
  },
  600_000,
);
