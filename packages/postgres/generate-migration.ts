import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync, rmSync } from 'node:fs';
import { orderFunctions } from './src/orders/writes/plpgsql-functions.ts';

// Until the first release there is one migration. Drizzle's schema has neither triggers nor functions: they are added
// to its file.

rmSync('migrations', { recursive: true });
execFileSync('drizzle-kit', ['generate', '--name', 'initial'], { stdio: 'inherit' });
const added = [readFileSync('audit-log.sql', 'utf8').trim(), ...orderFunctions.map((definition) => `${definition};`)];
appendFileSync('migrations/0000_initial.sql', added.map((text) => `--> statement-breakpoint\n${text}`).join(''));
