import { CredentialsService } from '@order-gateway/contract/gateway/v1/credentials_service_pb';
import type { MerchantManagement } from '@order-gateway/domain/management';
import { success } from '@order-gateway/domain/result';
import { expect, test } from 'vitest';
import { caller } from '../../test/helpers/fixed-deps.ts';
import { credentialOperations } from './credentials.ts';
import { readId } from './management.ts';

/** Lists the caller's client secrets through `management`. */
function listSecrets(management: MerchantManagement | undefined) {
  const { listClientSecrets } = CredentialsService.method;
  const operation = credentialOperations({ management }).find(({ method }) => method === listClientSecrets);
  return operation?.handle({}, caller);
}

test.each([
  [undefined, 'missing'],
  [null, 'missing'],
  ['', 'missing'],
  [12, 'wrong_type'],
  [{}, 'wrong_type'],
])('the id %j is rejected as %s', (value, code) => {
  const failure = { kind: 'invalid_request', errors: [{ field: 'id', code, message: expect.stringMatching(/./) }] };
  expect(readId({ id: value }, 'id', /^\d$/, 'client_secret')).toEqual({ ok: false, failure });
});

test('an id that no resource can have is not found, and any other id is accepted', () => {
  const read = (id: string) => readId({ id }, 'id', /^\d$/, 'client_secret');
  expect(read('12')).toEqual({ ok: false, failure: { kind: 'not_found', unknown: 'client_secret' } });
  expect(read('1')).toEqual(success('1'));
});

test.each(['unauthenticated', 'overloaded', 'unavailable', 'deadline_exceeded'] as const)(
  'if the settings cannot be managed because of %s, the caller gets this failure',
  async (kind) => {
    const perform = async () => ({ kind });
    const retryAfterMs = kind === 'overloaded' ? expect.any(Number) : undefined;
    expect(await listSecrets({ perform } as unknown as MerchantManagement)).toEqual({
      ok: false,
      failure: { kind, retryAfterMs },
    });
  },
);

test('the work is limited by the time that the call has left', async () => {
  const limits: number[] = [];
  const perform: MerchantManagement['perform'] = async (_caller, _work, timeoutMs) => {
    limits.push(timeoutMs);
    return { kind: 'unauthenticated' };
  };
  await listSecrets({ perform });
  expect(limits).toEqual([1_000]);
});

test('without self-service, an operation refers the merchant to the operator', async () => {
  expect(await listSecrets(undefined)).toMatchObject({
    failure: { kind: 'permission_denied', reason: expect.stringContaining('Ask the operator') },
  });
});
