import { execFileSync } from 'node:child_process';
import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import { orderFunctions } from './src/orders/plpgsql-functions.ts';

// Generates the migration that takes the schema from the existing migrations to that of the code. Usage: pnpm run
// generate NAME

const [name] = process.argv.slice(2);
if (name === undefined) throw new Error('name the change: pnpm run generate NAME');

const migrations = () => readdirSync('migrations').filter((file) => file.endsWith('.sql'));
const generate = (...options: string[]) =>
  execFileSync('drizzle-kit', ['generate', '--name', name, ...options], { stdio: 'inherit' });

const before = migrations();
const committed = before.map((file) => readFileSync(`migrations/${file}`, 'utf8')).join('');
generate();
// Drizzle's schema contains no functions, so new and changed functions are appended to the file.
const changed = orderFunctions.filter((definition) => !committed.includes(definition));
if (changed.length > 0) {
  if (migrations().length === before.length) generate('--custom');
  const added = migrations().find((file) => !before.includes(file));
  appendFileSync(`migrations/${added}`, changed.map((text) => `--> statement-breakpoint\n${text};`).join(''));
}
