import { CheckoutService } from '@gateway/contract/gateway/v1/checkout_service_pb';
import { OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import { type FailureCode, failures } from '@gateway/domain/failure';
import { loadFixtures } from '@gateway/fixtures/load-fixtures';
import { expect, test } from 'vitest';
import { openApi } from './openapi.ts';
import { jsonFailures, rpcFailures } from './operation-failures.ts';

// The fixtures show the errors that each operation returns; a replay shows that it does. The reference lists the same.

const { fixtures } = await loadFixtures();

/** Errors of the load, the network, the database and large messages, which any operation can return. */
const ofCircumstances: readonly FailureCode[] = [
  ...(['request_timeout', 'body_too_large', 'rate_limited', 'overloaded'] as const),
  ...(['unavailable', 'deadline_exceeded', 'internal'] as const),
];

/** The pages have no fixtures: payment-page.test.ts and simulate-payment.test.ts show their errors. */
const pageErrors = new Map([
  ['getPaymentPage', ['not_found']],
  ['simulatePayment', ['invalid_request', 'not_found', 'permission_denied']],
]);

/** The errors that fixtures show for an operation, without those of other paths and methods. */
function shownErrors(name: string, protocol: 'json' | 'grpc'): string[] {
  const calls = fixtures.flatMap((fixture) => fixture.calls).filter(({ operation }) => operation === name);
  const errors = calls.filter(
    ({ protocols, path, method, expect }) =>
      protocols.includes(protocol) && path === undefined && method === undefined && expect.body === undefined,
  );
  return withoutCircumstances(errors.map(({ expect }) => expect.outcome));
}

function withoutCircumstances(codes: readonly string[]): string[] {
  return [...new Set(codes)].filter((code) => !(ofCircumstances as readonly string[]).includes(code)).toSorted();
}

test.each(Object.entries(jsonFailures))('the reference lists the errors of %s, each with its status', (id, listed) => {
  const shown = pageErrors.get(id) ?? shownErrors(`${id.charAt(0).toUpperCase()}${id.slice(1)}`, 'json');
  expect(withoutCircumstances(listed)).toEqual(shown);
  const operations = Object.values(openApi('').paths).flatMap((methods) => Object.values(methods));
  const { responses = {} } = operations.find(({ operationId }) => operationId === id) ?? {};
  for (const code of listed) expect(responses[failures[code].httpStatus]?.description, code).toContain(`\`${code}\`: `);
});

test.each(Object.entries(rpcFailures))(
  'the reference lists the errors of %s, each with a gRPC status',
  (id, listed) => {
    expect(withoutCircumstances(listed)).toEqual(shownErrors(id.split('/')[1] ?? '', 'grpc'));
    for (const code of listed) expect(failures[code].grpcStatus, code).not.toBeNull();
  },
);

test('every RPC of the contract has its errors in the reference', () => {
  const methods = [OrderService, CheckoutService].flatMap(({ name, methods }) =>
    methods.map((method) => `${name}/${method.name}`),
  );
  expect(Object.keys(rpcFailures)).toEqual(methods);
});
