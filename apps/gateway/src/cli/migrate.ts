import { print } from '@order-gateway/runtime/output';
import { run } from '@order-gateway/runtime/process';
import { createProgram } from './arguments.ts';
import { withDatabase } from './with-database.ts';

/** `migrate`. */
export const program = createProgram(
  'migrate',
  'Migrates the database to the schema of this version. `start` also does this, unless MIGRATE=off.',
).action(() =>
  withDatabase(async () => print('The database has the schema of this version.'), { creates: true, migrate: true }),
);

if (import.meta.main) await run(() => program.parseAsync());
