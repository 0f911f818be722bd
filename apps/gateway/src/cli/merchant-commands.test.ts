import type { AccountAdmin } from '@order-gateway/postgres/accounts';
import { type Command, CommanderError } from 'commander';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { StartError, UsageError } from '../start/process.ts';
import { addBrandCommand } from './brand-command.ts';
import { checkoutCommands, merchantCommands } from './merchant-commands.ts';
import { addWebhookCommands } from './webhook-commands.ts';

const clientId = 'app_0123456789abcdefghijklmn';
const clientSecret = `sk_${'x'.repeat(43)}`;
const createdAt = new Date('2026-11-20T21:01:42.172Z');

const settings = {
  ...({ kind: 'merchant', mode: 'live', checksumMode: 'versioned' } as const),
  ...{ defaultLifetimeSeconds: null, rateLimit: null, disabledAt: null },
};

const accounts = {
  create: vi.fn(async () => ({ clientId, clientSecret })),
  list: vi.fn<AccountAdmin['list']>(async ({ afterClientId }) =>
    afterClientId === undefined ? [{ name: 'Shop', clientId, ...settings, createdAt, liveSecrets: 1 }] : [],
  ),
  setChecksumMode: vi.fn(async () => 'done' as const),
  setDefaultLifetime: vi.fn<AccountAdmin['setDefaultLifetime']>(async () => 'done'),
  rename: vi.fn(async () => 'done' as const),
  disable: vi.fn(async () => 'done' as const),
  enable: vi.fn<AccountAdmin['enable']>(async () => 'done'),
  log: vi.fn<AccountAdmin['log']>(async ({ after }) =>
    after === 0
      ? [{ id: 7, createdAt, actor: 'alice@ops', action: 'rename', clientId, details: { name: 'Corner Shop' } }]
      : [],
  ),
  setRateLimit: vi.fn<AccountAdmin['setRateLimit']>(async () => 'done'),
  addSecret: vi.fn(async () => ({ kind: 'added' as const, id: 2, createdAt, clientSecret })),
  listSecrets: vi.fn(async () => [
    { id: 1, createdAt, endsAt: null },
    { id: 2, createdAt, endsAt: new Date('2027-01-31T12:00:00Z') },
    { id: 3, createdAt, endsAt: new Date('2026-11-30T12:00:00Z') },
  ]),
  endSecret: vi.fn<AccountAdmin['endSecret']>(async (_client, _number, endsAt) => ({
    kind: 'ends',
    at: endsAt ?? new Date(),
  })),
  close: async () => {},
};

beforeEach(() => void vi.useFakeTimers({ now: Date.parse('2026-12-31T12:00:00Z'), toFake: ['Date'] }));
afterEach(() => {
  vi.useRealTimers();
  vi.clearAllMocks();
});

const merchant = (...args: string[]) => run(merchantCommands, args);
const checkout = (...args: string[]) => run(checkoutCommands, args);

/** Who acted, by `--as`. */
const actors: (string | undefined)[] = [];

/** Runs a command. Returns what it prints; what commander reports is in `errors`. */
async function run(commands: typeof merchantCommands, args: string[]): Promise<{ output: string; errors: string }> {
  const lines: string[] = [];
  let errors = '';
  const program = commands(
    (work, { actor } = {}) => {
      actors.push(actor);
      return work(accounts);
    },
    (line) => lines.push(line),
  );
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
  return { output: lines.join('\n'), errors };
}

function allOf(command: Command): Command[] {
  return [command, ...command.commands.flatMap(allOf)];
}

test.each([
  ['live merchant', merchant, [], 'live', { mode: 'live' }],
  ['test merchant', merchant, ['--test'], 'test', { mode: 'test' }],
  ['checkout system', checkout, [], 'checkout', {}],
])('create prints the client id and the secret of a %s', async (title, command, options, kind, more) => {
  const { output } = await command('create', '--name', 'Corner Shop', ...options);
  expect(output).toContain(`Created ${title} Corner Shop\n`);
  expect(output).toContain(`client secret: ${clientSecret}\n`);
  expect(accounts.create).toHaveBeenCalledWith('Corner Shop', kind);
  const { output: json } = await command('create', '--name', 'Corner Shop', ...options, '--json');
  expect(JSON.parse(json)).toEqual({
    ...{ name: 'Corner Shop', client_id: clientId, client_secret: clientSecret, ...more },
  });
});

describe('merchant', () => {
  test('list prints a header and readable times', async () => {
    expect((await merchant('list')).output.split('\n')).toEqual([
      'CLIENT ID                          KIND      STATE     CHECKSUM   LIVE SECRETS  CREATED                  NAME',
      'app_0123456789abcdefghijklmn       live      enabled   versioned  1             2026-11-20 21:01:42 UTC  Shop',
    ]);
    expect(JSON.parse((await merchant('list', '--json')).output)).toEqual({
      ...{ client_id: clientId, name: 'Shop', kind: 'live', checksum_mode: 'versioned', live_secrets: 1 },
      ...{ default_lifetime_seconds: null, rate_limit: null, disabled_at: null },
      created_at: '2026-11-20T21:01:42.172Z',
    });
  });

  test.each([
    ['list', accounts.list],
    ['log', accounts.log],
  ])('%s says that there is nothing to list, and prints no JSON', async (command, rows) => {
    rows.mockResolvedValueOnce([]).mockResolvedValueOnce([]);
    expect((await merchant(command)).output).toMatch(/^(There are no|The .+ is empty)/);
    expect((await merchant(command, '--json')).output).toBe('');
  });

  test('list shows the kinds of clients and the default lifetime', async () => {
    const client = (kind: 'merchant' | 'checkout', mode: 'live' | 'test', defaultLifetimeSeconds: number | null) => ({
      ...{ name: 'One', clientId, ...settings, createdAt, liveSecrets: 2 },
      ...{ kind, mode, defaultLifetimeSeconds },
    });
    const page = [client('merchant', 'test', 86_400), client('checkout', 'live', null)];
    accounts.list.mockResolvedValueOnce(page);
    const lines = (await merchant('list', '--json')).output.split('\n').map((line) => JSON.parse(line));
    expect(lines.map(({ kind, default_lifetime_seconds }) => [kind, default_lifetime_seconds])).toEqual([
      ['test', 86_400],
      ['checkout', null],
    ]);
  });

  test('rename and disable change the client', async () => {
    const renamed = await merchant('rename', clientId, '--name', 'Corner Shop');
    expect(renamed.output).toBe(`${clientId} is now Corner Shop.`);
    expect(accounts.rename).toHaveBeenCalledWith(clientId, 'Corner Shop');
    expect((await merchant('disable', clientId)).output).toBe(`${clientId} is disabled.`);
    expect(accounts.disable).toHaveBeenCalledWith(clientId);
  });

  test('log lists the actions of operators', async () => {
    expect((await merchant('log', clientId)).output.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      ['TIME', 'ACTION', 'CLIENT ID', 'WHO', 'DETAILS'],
      ['2026-11-20 21:01:42 UTC', 'rename', clientId, 'alice@ops', '{"name":"Corner Shop"}'],
    ]);
    expect(accounts.log).toHaveBeenLastCalledWith({ clientId, after: 7, limit: 500 });
    expect(JSON.parse((await merchant('log', '--json')).output)).toEqual({
      ...{ time: '2026-11-20T21:01:42.172Z', action: 'rename', client_id: clientId, who: 'alice@ops' },
      details: { name: 'Corner Shop' },
    });
  });

  test('--as names the actor, before and after the command', async () => {
    actors.length = 0;
    await merchant('--as', 'Alice', 'disable', clientId);
    await merchant('disable', clientId, '--as', 'Bob');
    await checkout('create', '--name', 'Cards');
    expect(actors).toEqual(['Alice', 'Bob', undefined]);
    await expect(merchant('disable', clientId, '--as', '\n')).rejects.toThrow(UsageError);
  });

  test('checksum sets the mode', async () => {
    await merchant('checksum', 'required', clientId);
    expect(accounts.setChecksumMode).toHaveBeenCalledWith(clientId, 'required');
  });

  test.each([
    ['1m', 60, 'expire after 60 seconds'],
    ['30m', 1_800, 'expire after 1800 seconds'],
    ['24h', 86_400, 'expire after 86400 seconds'],
    ['7d', 604_800, 'expire after 604800 seconds'],
    ['366d', 31_622_400, 'expire after 31622400 seconds'],
    ['none', null, 'do not expire'],
  ])('lifetime %s', async (lifetime, seconds, rule) => {
    const { output } = await merchant('lifetime', clientId, lifetime);
    expect(output).toBe(`Orders of ${clientId} without order_expires_at now ${rule}.`);
    expect(accounts.setDefaultLifetime).toHaveBeenCalledWith(clientId, seconds);
  });

  test.each([
    ['250', 250, 'may make 250 calls per second'],
    ['none', null, 'has no separate rate limit'],
  ])('limit %s', async (limit, callsPerSecond, rule) => {
    const { output } = await merchant('limit', clientId, limit);
    expect(output).toBe(`${clientId} now ${rule}.`);
    expect(accounts.setRateLimit).toHaveBeenCalledWith(clientId, callsPerSecond);
  });

  test.each([
    [['enable', clientId], accounts.enable],
    [['limit', clientId, '1'], accounts.setRateLimit],
    [['lifetime', clientId, '24h'], accounts.setDefaultLifetime],
  ])('%j of an unknown client: an error', async (args, change) => {
    change.mockResolvedValueOnce('unknown_account');
    await expect(merchant(...args)).rejects.toThrow(new StartError(`There is no account ${clientId}.`));
  });

  test('secret add takes an end with any offset', async () => {
    const { output } = await merchant('secret', 'add', clientId, '--json');
    expect(JSON.parse(output)).toEqual({
      id: '2',
      created_at: '2026-11-20T21:01:42.172+00:00',
      client_secret: clientSecret,
    });
    expect(accounts.addSecret).toHaveBeenCalledWith(clientId, null);
    await merchant('secret', 'add', clientId, '--ends', '2028-02-29T23:30:00.5-08:00');
    expect(accounts.addSecret).toHaveBeenLastCalledWith(clientId, new Date('2028-03-01T07:30:00.500Z'));
  });

  test('secret list --json prints what the API returns', async () => {
    expect(JSON.parse((await merchant('secret', 'list', clientId, '--json')).output).secrets).toEqual([
      { id: '1', created_at: '2026-11-20T21:01:42.172+00:00' },
      { id: '2', created_at: '2026-11-20T21:01:42.172+00:00', ends_at: '2027-01-31T12:00:00.000+00:00' },
      { id: '3', created_at: '2026-11-20T21:01:42.172+00:00', ends_at: '2026-11-30T12:00:00.000+00:00' },
    ]);
  });

  test('secret list prints a header and the state of each secret', async () => {
    expect((await merchant('secret', 'list', clientId)).output.split('\n')).toEqual([
      'NUMBER  CREATED                  STATE',
      '1       2026-11-20 21:01:42 UTC  works',
      '2       2026-11-20 21:01:42 UTC  works until 2027-01-31 12:00:00 UTC',
      '3       2026-11-20 21:01:42 UTC  ended 2026-11-30 12:00:00 UTC',
    ]);
  });

  test('secret revoke ends a secret now or at a time', async () => {
    const now = await merchant('secret', 'revoke', clientId, '12');
    expect(now.output).toBe(`Secret 12 of ${clientId} ends now.`);
    expect(accounts.endSecret).toHaveBeenCalledWith(clientId, 12, null);
    const later = await merchant('secret', 'revoke', clientId, '12', '--ends', '2027-01-31T12:00:00Z');
    expect(later.output).toBe(`Secret 12 of ${clientId} ends at 2027-01-31 12:00:00 UTC.`);
  });

  test('create measures the name in code points', async () => {
    const name = '😀'.repeat(255);
    await merchant('create', '--name', name);
    expect(accounts.create).toHaveBeenCalledWith(name, 'live');
    await expect(merchant('create', '--name', `${name}😀`)).rejects.toThrow('--name must be at most 255 characters.');
  });
});

describe('checkout with wrong arguments', () => {
  afterEach(() => expect(accounts.create).not.toHaveBeenCalled());

  test('a blank name', async () => {
    const message = '--name must contain a character that is not white space.';
    await expect(checkout('create', '--name', ' ')).rejects.toThrow(new UsageError(message));
  });

  test.each([
    [['create'], "required option '--name <NAME>' not specified"],
    [['create', '--name', 'Pay desk', '--test'], "unknown option '--test'"],
    [['create', 'again', '--name', 'Pay desk'], 'too many arguments'],
    [['secret', 'add', clientId], "unknown command 'secret'"],
    [['create', '--name', 'Pay desk', `--secret=${clientSecret}`], "unknown option '--secret=sk_...'"],
  ])('%j: %s', async (args, message) => {
    const { errors } = await checkout(...args);
    expect(errors).toContain(message);
    expect(errors).toContain('Usage: pnpm checkout');
    expect(errors).not.toContain(clientSecret);
  });
});

describe('merchant with wrong arguments', () => {
  afterEach(() => {
    for (const call of Object.values(accounts)) if (vi.isMockFunction(call)) expect(call).not.toHaveBeenCalled();
  });

  test.each([
    [['create', '--name', '  '], '--name must contain a character that is not white space.'],
    [['create', '--name', 'a\nb'], '--name must not contain control characters.'],
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
  ])('%j: %s', async (args, message) => {
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
    [['checksum', 'sometimes', clientId], 'Allowed choices are versioned, required'],
    [['checksum', clientSecret, clientId], "value 'sk_...' is invalid"],
    [['create', '--name', 'Shop', '--test', '--live'], "unknown option '--live'"],
    [['lifetime', clientId], "missing required argument 'LIFETIME'"],
    [['lifetime', clientId, '24h', 'none'], 'too many arguments'],
    [['checksum', 'required'], "missing required argument 'CLIENT_ID'"],
    [['secret', 'add'], "missing required argument 'CLIENT_ID'"],
    [['secret', 'add', clientId, `--secret=${clientSecret}`], "unknown option '--secret=sk_...'"],
  ])('%j: %s', async (args, message) => {
    const { errors } = await merchant(...args);
    expect(errors).toContain(message);
    expect(errors).toContain('Usage: pnpm merchant');
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
  ])('--ends %s is not a time', async (ends) => {
    const message = '--ends must be an ISO 8601 time with an offset, such as 2027-01-31T12:00:00Z.';
    await expect(merchant('secret', 'add', clientId, '--ends', ends)).rejects.toThrow(message);
  });
});

test('every command, argument and option of merchant and checkout is explained by --help', async () => {
  const ignore = async () => {};
  const program = merchantCommands(ignore, ignore);
  addBrandCommand(program, ignore, ignore);
  addWebhookCommands(program, ignore, ignore);
  for (const command of [program, checkoutCommands(ignore, ignore)].flatMap(allOf)) {
    expect(command.description(), command.name()).not.toBe('');
    for (const { description } of [...command.registeredArguments, ...command.options])
      expect(description).not.toBe('');
  }
  const { errors: help } = await merchant('secret', 'add', '--help');
  expect(help).toContain('Usage: pnpm merchant secret add [options] <CLIENT_ID>');
  expect(help).toMatch(/--ends <TIME> +when the secret stops working/);
});
