import { randomBytes } from 'node:crypto';
import { randomBase62 } from '@order-gateway/domain/accounts';
import { expect, test } from 'vitest';
import { auditLogOf, newSignInLink, request } from '../../helpers/console-visitor.ts';
import { useGateway } from '../../helpers/running-gateway.ts';

/** Failed sign-ins are not limited, so every guess reaches the database. */
const gateway = useGateway({ hasConsole: true });

const signIns = async () => (await auditLogOf(gateway, 'console.sign_in')).length;

test('10,000 guesses of a sign-in link get the same page, start no session, and leave the link usable', async () => {
  const link = await newSignInLink(gateway);
  const [, address = '', token = ''] = /^(.*\/)(\w{32})$/.exec(link) ?? [];
  const responses = new Set<string>();
  let remaining = 10_000;
  const guess = async () => {
    while (remaining > 0) {
      remaining -= 1;
      // Every second guess differs from the token only in its last four characters.
      const prefix = remaining % 2 === 0 ? token.slice(0, 28) : '';
      const guessed = `${prefix}${randomBase62(token.length - prefix.length, randomBytes)}`;
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
