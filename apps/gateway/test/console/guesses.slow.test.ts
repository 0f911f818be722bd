import { randomBytes } from 'node:crypto';
import { randomBase62 } from '@order-gateway/domain/accounts';
import { expect, test } from 'vitest';
import { newSignInLink, request } from '../helpers/console-visitor.ts';
import { useGateway } from '../helpers/running-gateway.ts';

/** It limits no failed sign-ins, so that every guess reaches the database. */
const gateway = useGateway({ hasConsole: true });

const signIns = async () => {
  const log = await gateway.accounts.log({ clientId: gateway.credentials.clientId, after: 0, limit: 500 });
  return log.filter(({ action }) => action === 'console.sign_in').length;
};

test('10,000 guesses of a sign-in link get one and the same page, start no session, and leave the link usable', async () => {
  const link = await newSignInLink(gateway);
  const [, address = '', token = ''] = /^(.*\/)(\w{32})$/.exec(link) ?? [];
  const responses = new Set<string>();
  let left = 10_000;
  const guess = async () => {
    while (left > 0) {
      left -= 1;
      // Every second guess differs from the token only in its last characters.
      const known = left % 2 === 0 ? token.slice(0, 28) : '';
      const guessed = `${known}${randomBase62(token.length - known.length, randomBytes)}`;
      const { status, text, headers } = await request(`${address}${guessed}`, { form: {} });
      responses.add(`${status} ${headers.get('set-cookie')} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: 50 }, guess));
  expect([...responses]).toEqual([expect.stringMatching(/^410 null .*This sign-in link no longer works/s)]);
  expect(await signIns()).toBe(0);
  expect((await request(link, { form: {} })).status).toBe(303);
  expect(await signIns()).toBe(1);
  expect([...responses]).toEqual([`410 null ${(await request(link, { form: {} })).text}`]);
});
