import { randomBytes, randomUUID } from 'node:crypto';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, parseSecretsKey } from '../config.ts';
import { messageOf, StartError } from '../process.ts';

/** The key of the embedded database, readable only by the owner. */
const fileName = 'secrets-key';

/**
 * The key that encrypts signing secrets: SECRETS_KEY, or that of the embedded database, which the first call creates. `undefined`
 * with another database and without SECRETS_KEY. Rejects with a {@link StartError}.
 */
export async function findSecretsKey({
  secretsKey,
  databaseUrl,
  dataDir,
}: Pick<Config, 'secretsKey' | 'databaseUrl' | 'dataDir'>): Promise<Uint8Array | undefined> {
  if (secretsKey !== undefined || databaseUrl !== undefined) return secretsKey;
  const path = join(dataDir, fileName);
  try {
    const text = await readFile(path, 'utf8').catch(() => createKeyFile(path));
    const key = parseSecretsKey(text.trim());
    if (key === undefined) throw new Error('it must hold 32 bytes in base64');
    return key;
  } catch (error) {
    throw new StartError(`The key file ${path} can't be used: ${messageOf(error)}.`);
  }
}

/** Creates the file and returns its content. Of two processes that start at the same time, the first decides. */
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
