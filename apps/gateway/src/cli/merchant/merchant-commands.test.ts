import { UsageError } from '@order-gateway/runtime/process';
import { type Command, CommanderError } from 'commander';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { checkoutCommands } from '../checkout-commands.ts';
import { merchantCommands } from './merchant-commands.ts';

const clientId = 'app_0123456789abcdefghijklmn';
const clientSecret = `sk_${'x'.repeat(43)}`;
/**
 * Replaces the function that opens the accounts, so that no command does its work.
 * test/cli/merchant-command.system.test.ts runs the commands on a database.
 */
const openAccounts = vi.fn<Parameters<typeof merchantCommands>[0]>(async () => {});

beforeEach(() => void vi.useFakeTimers({ now: Date.parse('2026-12-31T12:00:00Z'), toFake: ['Date'] }));
afterEach(() => {
  vi.useRealTimers();
  vi.clearAllMocks();
});

const merchant = (...args: string[]) => run(merchantCommands, args);
const checkout = (...args: string[]) => run(checkoutCommands, args);

/** Parses the arguments of a command. Returns the text that commander prints for an error. */
async function run(commands: typeof merchantCommands, args: string[]): Promise<string> {
  let errors = '';
  const program = commands(openAccounts, () => {});
  for (const command of allOf(program)) {
    const { outputError } = command.configureOutput();
    const writeErr = (text: string) => {
      errors += text;
    };
    command.exitOverride().configureOutput({ ...(outputError && { outputError }), writeErr, writeOut: writeErr });
  }
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
  }
  return errors;
}

function allOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allOf)];
}

test('--as names the actor, whether it precedes or follows the command', async () => {
  await merchant('--as', 'Alice', 'disable', clientId);
  await merchant('disable', clientId, '--as', 'Bob');
  await checkout('create', '--name', 'Cards');
  expect(openAccounts.mock.calls.map(([, { actor } = {}]) => actor)).toEqual(['Alice', 'Bob', undefined]);
  await expect(merchant('disable', clientId, '--as', '\n')).rejects.toThrow(UsageError);
});

describe('checkout with wrong arguments', () => {
  afterEach(() => expect(openAccounts).not.toHaveBeenCalled());

  test('rejects a name that consists of spaces', async () => {
    const message = '--name must contain a visible character.';
    await expect(checkout('create', '--name', ' ')).rejects.toThrow(new UsageError(message));
  });

  test.each([
    [['create'], "required option '--name <NAME>' not specified"],
    [['create', '--name', 'Pay desk', '--test'], "unknown option '--test'"],
    [['create', 'again', '--name', 'Pay desk'], 'too many arguments'],
    [['secret', 'add', clientId], "unknown command 'secret'"],
    [['create', '--name', 'Pay desk', `--secret=${clientSecret}`], "unknown option '--secret=sk_...'"],
  ])('%j prints an error and the usage: %s', async (args, message) => {
    const errors = await checkout(...args);
    expect(errors).toContain(message);
    expect(errors).toContain('Usage: checkout');
    expect(errors).not.toContain(clientSecret);
  });
});

describe('merchant with wrong arguments', () => {
  afterEach(() => expect(openAccounts).not.toHaveBeenCalled());

  test.each([
    [['create', '--name', '  '], '--name must contain a visible character.'],
    [['create', '--name', 'a\nb'], '--name must not contain control characters (U+000A at position 2).'],
    [['create', '--name', '😀'.repeat(256)], '--name must be at most 255 characters.'],
    [['secret', 'list', clientSecret], 'CLIENT_ID must be a client id shown by `merchant list`.'],
    [['secret', 'add', clientId, '--ends', '2026-12-31T12:00:00Z'], '--ends must be in the future.'],
    [['secret', 'revoke', clientId, '1', '--ends', '2026-12-31T11:59:59Z'], '--ends must be in the future.'],
    ...['', '0m', '1.5h', '90s', '24', '-1d', '367d', '8785h', '527041m', 'never', 'None', clientSecret].map(
      (lifetime): [string[], string] => [
        ['lifetime', clientId, '--', lifetime],
        'LIFETIME must be 1m to 366d, such as 30m, 24h or 7d, or none.',
      ],
    ),
    ...['', '0', '-1', '1.5', '1000001', 'None', clientSecret].map((limit): [string[], string] => [
      ['limit', clientId, '--', limit],
      'NUMBER must be a whole number from 1 to 1000000, or none.',
    ]),
    [['lifetime', '24h', clientId], 'CLIENT_ID must be a client id shown by `merchant list`.'],
    [['secret', 'revoke', clientId, '0'], 'NUMBER must be a secret number shown by `merchant secret list`.'],
    [['secret', 'revoke', clientId, clientSecret], 'NUMBER must be a secret number shown by `merchant secret list`.'],
  ])('%j is rejected: %s', async (args, message) => {
    await expect(merchant(...args)).rejects.toThrow(new UsageError(message));
  });

  test.each([
    [['remove', clientId], "unknown command 'remove'"],
    [['constructor'], "unknown command 'constructor'"],
    [['secret', 'show', clientId], "unknown command 'show'"],
    [['secret', clientSecret], "unknown command 'sk_...'"],
    [['create'], "required option '--name <NAME>' not specified"],
    [['create', '--name'], "option '--name <NAME>' argument missing"],
    [['create', 'again', '--name', 'Shop'], 'too many arguments'],
    [['create', '--name', 'Shop', '--ends', '2027-01-31T12:00:00Z'], "unknown option '--ends'"],
    [['checksum', clientId, 'sometimes'], 'Allowed choices are versioned, required'],
    [['checksum', clientId, clientSecret], "value 'sk_...' is invalid"],
    [['create', '--name', 'Shop', '--test', '--live'], "unknown option '--live'"],
    [['lifetime', clientId], "missing required argument 'LIFETIME'"],
    [['lifetime', clientId, '24h', 'none'], 'too many arguments'],
    [['checksum', clientId], "missing required argument 'MODE'"],
    [['secret', 'add'], "missing required argument 'CLIENT_ID'"],
    [['secret', 'add', clientId, `--secret=${clientSecret}`], "unknown option '--secret=sk_...'"],
  ])('%j prints an error and the usage: %s', async (args, message) => {
    const errors = await merchant(...args);
    expect(errors).toContain(message);
    expect(errors).toContain('Usage: merchant');
    expect(errors).not.toContain(clientSecret);
  });

  test.each([
    'tomorrow',
    '2027-01-31',
    '2027-01-31T12:00:00',
    '2027-02-29T12:00:00Z',
    '2027-02-30T12:00:00Z',
    '2027-13-01T12:00:00Z',
    '2027-01-31T25:00:00Z',
    '+012027-01-31T12:00:00Z',
  ])('--ends rejects %s', async (ends) => {
    const message = '--ends must be an ISO 8601 time with an offset, such as 2027-01-31T12:00:00Z.';
    await expect(merchant('secret', 'add', clientId, '--ends', ends)).rejects.toThrow(message);
  });
});
