import { resolve } from 'node:path';
import { nameAndMeaning } from '@order-gateway/command/columns';
import { defaultDataDir } from '@order-gateway/dev-postgres';
import { parseBaseUrl } from '@order-gateway/domain/links';
import { parseConnectionUrl } from '@order-gateway/postgres/connections';
import { StartError } from '@order-gateway/runtime/process';
import { parseSecretsKeys } from '@order-gateway/runtime/secrets-keys';
import {
  anyText,
  choice,
  type Environment,
  onOrOff,
  optional,
  port,
  readVariables,
  withDefault,
} from '@order-gateway/runtime/variables';

const url = [
  'must be an absolute http or https URL without query or fragment, with only letters, digits and -._~/ in its path',
  parseBaseUrl,
] as const;

/** All variables, keyed by the names under which the code uses their values. */
const variables = {
  host: withDefault('HOST', '127.0.0.1', 'the address to listen on', 'must be an address', (text) =>
    /\s/.test(text) ? undefined : text,
  ),
  port: withDefault('CHECKOUT_PORT', '8081', 'the port of the pages; 0 selects a free one', ...port),
  adminPort: optional(
    'CHECKOUT_ADMIN_PORT',
    'none',
    'the port of /metrics for Prometheus; 0 selects a free one',
    ...port,
  ),
  baseUrl: optional('CHECKOUT_BASE_URL', 'http://localhost: and the port', 'the public address', ...url),
  gatewayUrl: withDefault('BASE_URL', 'http://localhost:8080', 'the public address of the gateway', ...url),
  gatewayGrpcUrl: withDefault('GATEWAY_GRPC_URL', 'http://localhost:9090', "the gateway's gRPC port", ...url),
  clientId: optional('CHECKOUT_CLIENT_ID', 'required', "the checkout's account at the gateway", ...anyText),
  clientSecret: optional('CHECKOUT_CLIENT_SECRET', 'required', 'the secret of CHECKOUT_CLIENT_ID', ...anyText),
  databaseUrl: optional(
    'DATABASE_URL',
    "the gateway's embedded PostgreSQL",
    'postgres://..., which may be the database of the gateway or another one',
    '',
    (text) => parseConnectionUrl(text) && text,
  ),
  dataDir: {
    ...optional('DATA_DIR', '.data/', "the embedded PostgreSQL's data", 'must be a folder', (text) => resolve(text)),
    defaultValue: defaultDataDir,
  },
  migrate: withDefault('MIGRATE', 'on', 'off: never changes the schema', ...onOrOff),
  secretsKeys: optional(
    'SECRETS_KEY',
    'a file in DATA_DIR; with DATABASE_URL none',
    "encrypts the providers' keys: 32 bytes in base64, earlier keys after commas",
    'must be 32 bytes in base64, or several such keys separated by commas',
    parseSecretsKeys,
  ),
  logLevel: withDefault(
    'LOG_LEVEL',
    'info',
    'error, warn or info',
    ...choice({ error: 'error', warn: 'warn', info: 'info' }),
  ),
};

/** The values of these variables are never shown. Each can also be read from a file. */
const secretNames = ['CHECKOUT_CLIENT_SECRET', 'DATABASE_URL', 'SECRETS_KEY'];

/** The text of `--help`. */
export const startUsage = `Usage: node apps/checkout/src/main.ts [options]

Starts the checkout, with the configuration in environment variables.

Options:
  -h, --help     show this help
  -V, --version  show the version

Variables:
${Object.values(variables)
  .map(({ name, help, defaultText }) => nameAndMeaning(name, `${help} (${defaultText})`, 26))
  .join('\n')}

CHECKOUT_CLIENT_SECRET_FILE, DATABASE_URL_FILE and SECRETS_KEY_FILE name files
that hold these values.
Exit codes: 0 stopped; 1 the start failed, or a stop took too long; 2 an
argument is wrong.
`;

/** The configuration of a checkout. */
export type Config = ReturnType<typeof readConfig>;

/** Reads the configuration. Throws one error with all problems. */
export function readConfig(env: Environment) {
  const { values, problems } = readVariables(variables, secretNames, env);
  if (problems.length > 0) throw new StartError(problems.join('\n'));
  return values;
}

/** Returns the account at the gateway. Throws an error if it is not configured. */
export function credentialsOf({ clientId, clientSecret }: Config) {
  if (!clientId || !clientSecret)
    throw new StartError(
      'CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET are required. Create them with `checkout create`.',
    );
  return { clientId, clientSecret };
}
