import { randomBytes, randomUUID } from 'node:crypto';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SecretsKeys } from './encryption.ts';
import { messageOf, StartError } from './process.ts';
import { optional } from './variables.ts';

/** The file with the encryption key for the embedded database, readable only by its owner. */
const fileName = 'secrets-key';

/**
 * Returns the keys that encrypt signing secrets: those of SECRETS_KEY or, for the embedded database, a key that the
 * first call creates. Returns `undefined` for an external database without SECRETS_KEY. Rejects with a
 * {@link StartError} if the key file can't be used.
 */
export async function findSecretsKeys({
  secretsKeys,
  databaseUrl,
  dataDir,
}: {
  readonly secretsKeys: SecretsKeys | undefined;
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
}): Promise<SecretsKeys | undefined> {
  if (secretsKeys !== undefined || databaseUrl !== undefined) return secretsKeys;
  const path = join(dataDir, fileName);
  try {
    const text = await readFile(path, 'utf8').catch(() => createKeyFile(path));
    const keys = parseSecretsKeys(text.trim());
    if (keys === undefined) throw new Error('it must hold 32 bytes in base64');
    return keys;
  } catch (error) {
    throw new StartError(`The key file ${path} can't be used: ${messageOf(error)}.`);
  }
}

/** Returns the variable `SECRETS_KEY`, whose help says what it encrypts. */
export function secretsKeysVariable(secrets: string) {
  return optional({
    name: 'SECRETS_KEY',
    help: `encrypts ${secrets}: 32 bytes in base64, earlier keys after commas`,
    defaultText: 'a file in DATA_DIR; with DATABASE_URL none',
    rule: 'must be 32 bytes in base64, or several such keys separated by commas',
    parse: parseSecretsKeys,
  });
}

/**
 * Parses AES-256 keys in base64, as `openssl rand -base64 32` prints them, separated by commas. Returns `undefined` if
 * the text is invalid.
 */
export function parseSecretsKeys(text: string): SecretsKeys | undefined {
  if (!/^[0-9A-Za-z+/]{43}=(,[0-9A-Za-z+/]{43}=)*$/.test(text)) return undefined;
  const [first = '', ...earlierKeys] = text.split(',');
  const parse = (key: string) => Buffer.from(key, 'base64');
  return [parse(first), ...earlierKeys.map(parse)];
}

/**
 * Creates the file and returns its content. If two processes start at the same time, both use the file of the first.
 */
async function createKeyFile(path: string): Promise<string> {
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600, flush: true });
  try {
    // Unlike rename, link fails if the file exists.
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return readFile(path, 'utf8');
}
