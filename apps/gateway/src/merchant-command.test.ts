import { expect, test } from 'vitest';
import { readMerchantCommand } from './merchant-command.ts';

const clientId = 'app_0123456789abcdefghijklmn';

test.each([
  [['create', '--name', 'Corner Shop'], { kind: 'create', name: 'Corner Shop', json: false }],
  [['list', '--json'], { kind: 'list', json: true }],
  [['checksum', 'required', clientId], { kind: 'checksum', mode: 'required', clientId }],
  [['secret', 'add', clientId], { kind: 'secret add', clientId, endsAt: null, json: false }],
  [
    ['secret', 'add', clientId, '--ends', '2027-01-31T12:00:00Z'],
    { kind: 'secret add', clientId, endsAt: new Date('2027-01-31T12:00:00Z'), json: false },
  ],
  [['secret', 'list', clientId], { kind: 'secret list', clientId, json: false }],
  [['secret', 'revoke', clientId, '12'], { kind: 'secret revoke', clientId, secretId: 12, endsAt: null }],
])('reads %j', (args, command) => {
  expect(readMerchantCommand(args)).toEqual(command);
});

test.each([
  [[]],
  [['create']],
  [['create', '--name', '  ']],
  [['create', '--name', 'a\nb']],
  [['create', '--name', 'x'.repeat(256)]],
  [['create', 'again', '--name', 'Shop']],
  [['checksum', 'sometimes', clientId]],
  [['secret', 'add']],
  [['secret', 'add', clientId, '--ends', 'tomorrow']],
  [['secret', 'add', clientId, '--ends', '2027-01-31T12:00:00']],
  [['secret', 'revoke', clientId, '0']],
  [['secret', 'revoke', clientId, 'sk_x']],
  [['secret', 'add', clientId, '--secret', 'sk_x']],
  [['remove', clientId]],
])('refuses %j', (args) => {
  expect(readMerchantCommand(args)).toBeUndefined();
});
