import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema } from '@gateway/contract/gateway/v1/order_service_pb';
import { parseOrder } from '@gateway/domain/parse-order';
import { protocols as doors } from '@gateway/fixtures/client';
import { fixturesFolder, loadFixtures } from '@gateway/fixtures/load-fixtures';
import { expect, test } from 'vitest';
import { createCallMaker, framed } from './make-calls.ts';
import { kindAt, sourceOf } from './plan-calls.ts';

const set = await loadFixtures(fixturesFolder);
const credentials = [1, 2, 3].map((number) => ({ clientId: `app_${number}`, clientSecret: `sk_${number}` }));
const settings = { protocol: 'mixed', merchants: 3, replayShare: 0.2, invalidShare: 0.1, seed: 7 } as const;
const numbers = Array.from({ length: 2_000 }, (_, number) => number);

test('the same seed makes the same calls, in whatever order they are asked for, and another seed makes others', () => {
  const make = createCallMaker({ settings, set, credentials });
  const again = createCallMaker({ settings, set, credentials });
  const backwards = numbers.toReversed().map(again).toReversed();
  expect(backwards).toEqual(numbers.map(make));
  const other = createCallMaker({ settings: { ...settings, seed: 8 }, set, credentials });
  expect(other(0).body).not.toEqual(make(0).body);
});

test('the shares, doors and merchants are those that were asked for', () => {
  const kinds = Map.groupBy(numbers, (number) => kindAt(settings, number));
  expect(kinds.get('replay')?.length).toBeGreaterThan(330);
  expect(kinds.get('replay')?.length).toBeLessThan(470);
  expect(kinds.get('invalid')?.length).toBeGreaterThan(150);
  expect(kinds.get('invalid')?.length).toBeLessThan(250);
  const calls = numbers.map(createCallMaker({ settings, set, credentials }));
  expect(new Set(calls.map(({ door }) => door))).toEqual(new Set(doors));
  expect(new Set(calls.map(({ order }) => order?.merchant))).toEqual(new Set([0, 1, 2, undefined]));
});

test('a repeated order is an earlier one, the same to the last byte at the same door', () => {
  const make = createCallMaker({ settings: { ...settings, protocol: 'json' }, set, credentials });
  const repeated = numbers.filter((number) => (sourceOf(settings, number) ?? number) !== number);
  expect(repeated.length).toBeGreaterThan(300);
  for (const number of repeated) {
    const source = sourceOf(settings, number) ?? -1;
    expect(source).toBeLessThan(number);
    expect(kindAt(settings, source)).toBe('new');
    expect(make(number).body).toEqual(make(source).body);
    expect(make(number).headers).toEqual(make(source).headers);
  }
});

test('new orders are valid, and no two have the same id', () => {
  const make = createCallMaker({ settings: { ...settings, protocol: 'connect', invalidShare: 0 }, set, credentials });
  const fresh = numbers.filter((number) => kindAt({ ...settings, invalidShare: 0 }, number) === 'new').map(make);
  for (const { body } of fresh)
    expect(parseOrder(JSON.parse(Buffer.from(body).toString()))).toMatchObject({ ok: true });
  expect(new Set(fresh.map(({ order }) => order?.orderId)).size).toBe(fresh.length);
});

test('binary doors get the same order in Protobuf, and refusals come from the fixtures at every door', () => {
  const json = createCallMaker({ settings: { ...settings, protocol: 'json' }, set, credentials });
  const grpc = createCallMaker({ settings: { ...settings, protocol: 'grpc' }, set, credentials });
  const text = JSON.parse(Buffer.from(json(3).body).toString());
  const message = fromBinary(CreateOrderRequestSchema, grpc(3).body.subarray(5));
  expect(message).toMatchObject({ orderId: text.order_id, orderAmount: text.order_amount, orderNote: text.order_note });
  for (const protocol of doors) {
    const make = createCallMaker({
      settings: { ...settings, protocol, invalidShare: 1, replayShare: 0 },
      set,
      credentials,
    });
    const outcomes = new Set(numbers.slice(0, 500).flatMap((number) => make(number).expected));
    expect([...outcomes]).toEqual(expect.arrayContaining(['invalid_order', 'unauthenticated', 'checksum_mismatch']));
  }
});

test('a frame says its length', () => {
  const message = toBinary(CreateOrderRequestSchema, create(CreateOrderRequestSchema, { orderId: 'abc' }));
  expect([...framed(message)]).toEqual([0, 0, 0, 0, 5, ...message]);
});
