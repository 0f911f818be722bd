import { expect, test } from 'vitest';
import { createOperatorAccess, createOperatorLink } from './operator-access.ts';

const keys = [new Uint8Array(32).fill(1)] as const;
const minuteMs = 60_000;

/** Returns operator access that was created two seconds ago by its own clock, which `pass` advances. */
function createAccess() {
  let nowMs = Date.now() - 1_000;
  const access = createOperatorAccess(keys, () => nowMs);
  const pass = (ms: number) => {
    nowMs += ms;
  };
  pass(2_000);
  return { ...access, pass };
}

const newLink = (key: readonly [Uint8Array] = keys) => createOperatorLink(key, 9464).split('/').at(-1) ?? '';

test('a link works once, within 15 minutes', () => {
  const { signIn, pass } = createAccess();
  const [used, early, late] = [newLink(), newLink(), newLink()];
  expect(signIn(used)).toMatch(
    /^order-gateway-operator=\w{32}; Max-Age=28800; Path=\/operator; HttpOnly; SameSite=Strict$/,
  );
  expect(signIn(used)).toBeUndefined();
  pass(14 * minuteMs);
  expect(signIn(used)).toBeUndefined();
  expect(signIn(early)).toBeDefined();
  pass(minuteMs);
  expect([signIn(late), signIn(used)]).toEqual([undefined, undefined]);
});

test('a link that was printed before the start does not work, because it may have been used', () => {
  const link = newLink();
  expect(createOperatorAccess(keys, () => Date.now() + 1).signIn(link)).toBeUndefined();
});

test('a link is rejected if it was signed with another key, or changed', () => {
  const { signIn } = createAccess();
  const [time, token, signature] = newLink().split('.');
  const later = `${Number(time) + minuteMs}`;
  const changed = [
    [later, token, signature],
    [time, 'x'.repeat(32), signature],
    [time, token, ''],
    [time, token],
  ];
  for (const link of [newLink([new Uint8Array(32)]), '', '.', ...changed.map((parts) => parts.join('.'))])
    expect([link, signIn(link)]).toEqual([link, undefined]);
});

test('a session ends after an hour without use, after 8 hours, and on sign-out', () => {
  const { signIn, isSignedIn, signOut, pass } = createAccess();
  const [idle, busy, ended] = [newLink(), newLink(), newLink()].map(signIn);
  expect(signOut(ended)).toMatch(/^order-gateway-operator=; Max-Age=0;/);
  expect([isSignedIn(idle), isSignedIn(busy), isSignedIn(ended), isSignedIn(undefined)]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  for (let minutes = 0; minutes < 8 * 60 - 30; minutes += 30) {
    pass(30 * minuteMs);
    expect(isSignedIn(busy)).toBe(true);
  }
  expect([isSignedIn(idle), isSignedIn(idle)]).toEqual([false, false]);
  pass(30 * minuteMs);
  expect(isSignedIn(busy)).toBe(false);
});

test('the 21st session ends the oldest one', () => {
  const { signIn, isSignedIn } = createAccess();
  const sessions = Array.from({ length: 21 }, () => signIn(newLink()));
  expect(sessions.map(isSignedIn)).toEqual([false, ...Array(20).fill(true)]);
});
