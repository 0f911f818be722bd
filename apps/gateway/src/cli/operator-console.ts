import { consoleLimits } from '@order-gateway/domain/accounts';
import { readConfig } from '../config.ts';
import { createOperatorLink } from '../console/operator/operator-access.ts';
import { findSecretsKeys } from '../secrets/secrets-keys.ts';
import { run, StartError } from '../start/process.ts';
import { createProgram, jsonHelp } from './arguments.ts';
import { print } from './output.ts';

const minutes = consoleLimits.linkMs / 60_000;

const program = createProgram('pnpm operator', "Opens the operators' view of a gateway.");

program
  .command('console')
  .description(`Prints a link to the operators' view that signs one person in, within ${minutes} minutes.`)
  .option('--json', jsonHelp)
  .action(async ({ json }: { json?: true }) => {
    const config = readConfig(process.env);
    const secretsKeys = await findSecretsKeys(config);
    if (secretsKeys === undefined) throw new StartError('Set SECRETS_KEY to that of the gateway: it signs the link.');
    const url = createOperatorLink(secretsKeys, config.adminPort);
    if (json) return print(JSON.stringify({ url, expires_in_seconds: consoleLimits.linkMs / 1_000 }));
    print(`${url}\nThe link signs you in once, within ${minutes} minutes, on the machine that runs the gateway.`);
  });

await run(() => program.parseAsync());
