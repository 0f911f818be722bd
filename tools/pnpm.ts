import manifest from '../package.json' with { type: 'json' };

/**
 * The shell command for pnpm. It is the pnpm that runs the tests, because `npx` asks the registry first. If the tests
 * run without pnpm, it is the README's command.
 */
export const pnpm = process.env.npm_execpath?.endsWith('/pnpm')
  ? `'${process.env.npm_execpath}'`
  : `npx --yes ${manifest.packageManager}`;
