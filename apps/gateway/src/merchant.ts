import { parseArgs } from 'node:util';
import { merchantNameLengthMax } from '@gateway/domain/merchant';
import { readConfig } from './config.ts';
import { openDatabase } from './database.ts';
import { createMerchant } from './new-merchant.ts';
import { run, StartError } from './run.ts';

const usage = 'Usage: pnpm merchant create --name NAME [--json]';

await run(async () => {
  const { command, name, json } = readArguments(process.argv.slice(2));
  if (command !== 'create') throw new StartError(usage);
  if (name.trim() === '' || name.length > merchantNameLengthMax) {
    throw new StartError(`A merchant's name has 1 to ${merchantNameLengthMax} characters.\n${usage}`);
  }
  const database = await openDatabase(readConfig(process.env));
  try {
    const { clientId, clientSecret } = await createMerchant(database.url, name);
    const answer = { name, client_id: clientId, client_secret: clientSecret };
    process.stdout.write(json ? `${JSON.stringify(answer)}\n` : told(answer));
  } finally {
    await database.close();
  }
});

function readArguments(args: string[]): { command: string | undefined; name: string; json: boolean } {
  try {
    const options = { name: { type: 'string' }, json: { type: 'boolean' } } as const;
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options });
    return { command: positionals[0], name: values.name ?? '', json: values.json ?? false };
  } catch {
    throw new StartError(usage);
  }
}

function told({ name, client_id, client_secret }: Record<'name' | 'client_id' | 'client_secret', string>): string {
  return `Merchant ${name}\n  client id:     ${client_id}\n  client secret: ${client_secret}\nThe secret is shown this once. Keep it where only the merchant's backend can read it.\n`;
}
