import { expect, test } from 'vitest';
import { openGateway, unreachable } from './gateway.ts';

test('a command whose gateway does not run names the address and its variable', async () => {
  const url = 'http://127.0.0.1:1';
  const gateway = openGateway(url, { clientId: 'checkout_1', clientSecret: 's' });
  const error = await gateway.resolve('A'.repeat(32)).catch((cause: unknown) => cause);
  expect(unreachable(error, url)?.message).toMatch(
    /^The gateway can't be reached at http:\/\/127\.0\.0\.1:1: .*ECONNREFUSED.*GATEWAY_GRPC_URL/,
  );
  expect(unreachable(new TypeError('x'), url)).toBeUndefined();
});
