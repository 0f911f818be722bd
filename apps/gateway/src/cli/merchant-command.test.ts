import { expect, test } from 'vitest';
import { StartError } from '../process.ts';
import { merchantUsage, readMerchantCommand } from './merchant-command.ts';

const clientId = 'app_0123456789abcdefghijklmn';
const nowMs = Date.parse('2026-12-31T12:00:00Z');

test.each([
  [['create', '--name', 'Corner Shop'], { kind: 'create', name: 'Corner Shop', json: false }],
  [['list', '--json'], { kind: 'list', json: true }],
  [['checksum', 'required', clientId], { kind: 'checksum', mode: 'required', clientId }],
  [['secret', 'add', clientId], { kind: 'secret add', clientId, endsAt: null, json: false }],
  [
    ['secret', 'add', clientId, '--ends', '2027-01-31T12:00:00Z'],
    { kind: 'secret add', clientId, endsAt: new Date('2027-01-31T12:00:00Z'), json: false },
  ],
  [
    ['secret', 'add', clientId, '--ends', '2028-02-29T23:30:00.5-08:00'],
    { kind: 'secret add', clientId, endsAt: new Date('2028-03-01T07:30:00.500Z'), json: false },
  ],
  [['secret', 'list', clientId], { kind: 'secret list', clientId, json: false }],
  [['secret', 'revoke', clientId, '12'], { kind: 'secret revoke', clientId, secretId: 12, endsAt: null }],
  [['--help'], { kind: 'help' }],
  [['secret', 'add', '-h'], { kind: 'help' }],
])('reads %j', (args, command) => {
  expect(readMerchantCommand(args, nowMs)).toEqual(command);
});

test('a name is measured in code points', () => {
  const name = '😀'.repeat(255);
  expect(readMerchantCommand(['create', '--name', name], nowMs)).toMatchObject({ name });
  const longer = () => readMerchantCommand(['create', '--name', `${name}😀`], nowMs);
  expect(longer).toThrow('--name must be at most 255 characters.\n');
});

test.each([
  [[], 'A command is missing.'],
  [['remove', clientId], 'There is no command remove.'],
  [['constructor'], 'There is no command constructor.'],
  [['secret'], 'There is no command secret.'],
  [['secret', 'show', clientId], 'There is no command secret show.'],
  [['create'], '--name is missing.'],
  [['create', '--name', '  '], '--name must contain at least one non-blank character.'],
  [['create', '--name', 'a\nb'], '--name must not contain control characters.'],
  [['create', '--name'], "Option '--name <value>' argument missing."],
  [['create', 'again', '--name', 'Shop'], 'create takes options only.'],
  [['create', '--name', 'Shop', '--ends', '2027-01-31T12:00:00Z'], 'create does not take --ends.'],
  [['checksum', 'sometimes', clientId], 'Checksums are versioned or required.'],
  [['checksum', 'required'], 'checksum takes versioned|required CLIENT_ID.'],
  [['secret', 'add'], 'secret add takes CLIENT_ID.'],
  [['secret', 'add', clientId, '--secret', 'sk_x'], "Unknown option '--secret'."],
  [['secret', 'add', clientId, '--ends', '2026-12-31T12:00:00Z'], '--ends must be a time to come.'],
  [['secret', 'revoke', clientId, '0'], 'NUMBER must be one that secret list tells.'],
  [['secret', 'revoke', clientId, 'sk_x'], 'NUMBER must be one that secret list tells.'],
])('refuses %j in one sentence: %s', (args, sentence) => {
  expect(() => readMerchantCommand(args, nowMs)).toThrow(new StartError(`${sentence}\n\n${merchantUsage}`));
});

test.each([
  'tomorrow',
  '2027-01-31',
  '2027-01-31T12:00:00',
  '2027-02-29T12:00:00Z',
  '2027-02-30T12:00:00Z',
  '2027-13-01T12:00:00Z',
  '2027-01-31T25:00:00Z',
])('refuses %s as a time', (ends) => {
  const told = '--ends must be a time that exists, as ISO 8601 with an offset.';
  expect(() => readMerchantCommand(['secret', 'add', clientId, '--ends', ends], nowMs)).toThrow(told);
});
