import { create } from '@bufbuild/protobuf';
import type { ServiceType } from '@order-gateway/contract/gateway/v1/order_pb';
import { CreateOrderRequestSchema } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { expect, test } from 'vitest';
import { memberReader } from './messages.ts';

test.each<[string, ServiceType, string | undefined]>([
  ['not set', 0, undefined],
  ['of this version', 1, 'DIGITAL'],
  // The rules of fields reject it. If it were absent, an optional field would be ignored.
  ['of a later version', 99 as ServiceType, '99'],
])('an enum value that is %s is read as its name or number', (_, serviceType, expected) => {
  const read = memberReader(CreateOrderRequestSchema);
  expect(read(create(CreateOrderRequestSchema, { serviceType })).service_type).toBe(expected);
});
