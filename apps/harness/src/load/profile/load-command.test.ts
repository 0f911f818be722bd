import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../../../tools/test-resources.ts';
import { givenCredentials } from './load-command.ts';

test('reads one merchant per line of JSON; an error has the number of an invalid line, or how many merchants are missing', async () => {
  const file = join(await temporaryFolder(), 'mine.json');
  const line = '{"client_id":"app_1","client_secret":"sk_1","name":"First"}\n';
  writeFileSync(file, `${line}\n${line}`);
  const credentials = { clientId: 'app_1', clientSecret: 'sk_1' };
  expect(givenCredentials(file, 1)).toEqual([credentials]);
  expect(givenCredentials(file, 2)).toEqual([credentials, credentials]);
  expect(() => givenCredentials(file, 3)).toThrow(`the run needs credentials of 3 merchants, but found 2 in ${file}`);
  for (const other of ['{"client_id":"app_1"}', '{', '[]']) {
    writeFileSync(file, `${line}${other}\n`);
    expect(() => givenCredentials(file, 1)).toThrow('mine.json, line 2: must be an object with client_id');
  }
});
