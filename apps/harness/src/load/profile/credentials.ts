import { readFileSync } from 'node:fs';
import type { Credentials } from '@order-gateway/domain/accounts';
import { z } from 'zod';
import { credentialsFromEnvironment } from '../../command/command.ts';

const lineSchema = z.object({ client_id: z.string(), client_secret: z.string() });

/**
 * Reads credentials for a running gateway: from a file with one JSON object per line, as `merchant create --json`
 * prints it, or those of one merchant from the environment. Throws if there are too few.
 */
export function givenCredentials(file: string | undefined, merchants: number): Credentials[] {
  const given = file === undefined ? [credentialsFromEnvironment() ?? []].flat() : readCredentials(file);
  if (given.length < merchants) {
    const source = file ?? 'CLIENT_ID and CLIENT_SECRET';
    throw new Error(`the run needs credentials of ${merchants} merchants, but found ${given.length} in ${source}`);
  }
  return given.slice(0, merchants);
}

function readCredentials(file: string): Credentials[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.flatMap((line, index) => {
    if (line.trim() === '') return [];
    try {
      const { client_id: clientId, client_secret: clientSecret } = lineSchema.parse(JSON.parse(line));
      return [{ clientId, clientSecret }];
    } catch {
      throw new Error(`${file}, line ${index + 1}: must be an object with client_id and client_secret`);
    }
  });
}
