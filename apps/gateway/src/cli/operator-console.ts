import { consoleLimits } from '@order-gateway/domain/accounts';
import { print } from '@order-gateway/runtime/output';
import { run, StartError } from '@order-gateway/runtime/process';
import { findSecretsKeys } from '@order-gateway/runtime/secrets-keys';
import { readConfig } from '../config.ts';
import { createOperatorLink, operatorPath } from '../pages/console/operator/operator-access.ts';
import { createProgram, jsonHelp } from './arguments.ts';
import { requireView } from './require-view.ts';

const minutes = consoleLimits.linkMs / 60_000;

/** `operator`. */
export const program = createProgram('operator', "Gives access to the operators' view of a gateway.");

program
  .command('console')
  .description(`Prints a one-time link to the operators' view. The link expires after ${minutes} minutes.`)
  .option('--json', jsonHelp)
  .action(async ({ json }: { json?: true }) => {
    const config = readConfig(process.env);
    const secretsKeys = await findSecretsKeys(config);
    if (secretsKeys === undefined)
      throw new StartError("SECRETS_KEY is not set. Set it to the gateway's value, which signs the link.");
    const url = createOperatorLink(secretsKeys, config.adminPort);
    const message = "The operators' view is off. Start the gateway with OPERATOR_CONSOLE=on.";
    await requireView(new URL(operatorPath, url), message);
    if (json) return print(JSON.stringify({ url, expires_in_seconds: consoleLimits.linkMs / 1_000 }));
    print(`${url}\nThe link works once and expires after ${minutes} minutes.`);
    print("Open it on the gateway's machine or through a tunnel to its admin port.");
  });

if (import.meta.main) await run(() => program.parseAsync());
