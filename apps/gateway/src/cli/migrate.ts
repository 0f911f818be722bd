import { Command } from 'commander';
import { run } from '../process.ts';
import { print } from './output.ts';
import { withDatabase } from './with-accounts.ts';

await run(async () => {
  new Command('pnpm migrate')
    .description('Brings the database to the schema of this version, as `pnpm start` does unless MIGRATE=off.')
    .parse();
  await withDatabase(async () => print('The database has the schema of this version.'), { migrate: true });
});
