import manifest from '../package.json' with { type: 'json' };

/**
 * The command of pnpm for a shell: the program that runs the tests, because `npx` asks the registry first. If they run
 * without pnpm, the README's command.
 */
export const pnpm = process.env.npm_execpath?.endsWith('/pnpm')
  ? `'${process.env.npm_execpath}'`
  : `npx --yes ${manifest.packageManager}`;
