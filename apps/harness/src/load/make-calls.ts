import { create, toBinary } from '@bufbuild/protobuf';
import {
  type CreateOrderRequest,
  CreateOrderRequestSchema,
  ServiceType,
} from '@gateway/contract/gateway/v1/order_service_pb';
import { binaryOrder } from '@gateway/fixtures/binary-order';
import { createOrderPath, type Protocol as Door, isBinary } from '@gateway/fixtures/client';
import { type Credentials, fillCall } from '@gateway/fixtures/fill-call';
import type { FixtureCall } from '@gateway/fixtures/fixture';
import { JsonNumber as WrittenNumber, writeJson } from '@gateway/fixtures/json-number';
import type { FixtureSet } from '@gateway/fixtures/load-fixtures';
import { seededAt } from '@gateway/fixtures/seeded';
import { type OrderData, orderAt, orderIdPrefix, sourceOf } from './plan-calls.ts';
import { doorsOf, type LoadSettings } from './settings.ts';

/** One call, ready to be sent at its door. */
export interface LoadCall {
  /** Counted from 0 over the whole run. */
  readonly number: number;
  readonly door: Door;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Encoded as the door wants it, framing included. */
  readonly body: Uint8Array;
  /** The order that an acknowledgement would be about; `undefined` for a call that must be refused. */
  readonly order: { readonly merchant: number; readonly orderId: string; readonly amount: string } | undefined;
  /** The outcomes that are right. */
  readonly expected: readonly string[];
}

export interface CallMakerOptions {
  readonly settings: Pick<LoadSettings, 'protocol' | 'merchants' | 'replayShare' | 'invalidShare' | 'seed'>;
  readonly set: FixtureSet;
  /** One for each merchant. */
  readonly credentials: readonly Credentials[];
}

const kept = ['created', 'replayed'] as const;

/**
 * Gives a function that makes a run's calls, each from its number alone: any process can make any of them, in any order, and a
 * second run with the same settings makes the same ones.
 */
export function createCallMaker({ settings, set, credentials }: CallMakerOptions): (number: number) => LoadCall {
  const doorsInUse = doorsOf(settings.protocol);
  const refusals = new Map(doorsInUse.map((door) => [door, refusalsAt(door, set)]));
  const template = textsOf(set.validOrder);
  return (number) => {
    const random = seededAt(settings.seed, number);
    const door = random.pick(doorsInUse);
    const source = sourceOf(settings, number);
    if (source === undefined) {
      const [first, ...others] = refusals.get(door) ?? [];
      if (first === undefined) throw new Error(`no fixture is refused at the ${door} door`);
      const own = credentialsAt(credentials, random.below(settings.merchants));
      return refusedCall(number, door, random.pick([first, ...others]), { set, own, settings });
    }
    const order = orderAt(settings, source);
    const own = credentialsAt(credentials, order.merchant);
    const { orderId, amount, merchant } = order;
    return {
      ...{ number, door, path: pathAt(door), headers: headersAt(door, own), body: bodyAt(door, template, order) },
      ...{ order: { merchant, orderId, amount }, expected: kept },
    };
  };
}

function credentialsAt(credentials: readonly Credentials[], merchant: number): Credentials {
  const own = credentials[merchant];
  if (own === undefined) throw new Error(`there are no credentials for merchant ${merchant}`);
  return own;
}

/** A frame of gRPC and gRPC-Web: a byte of flags, the length, the message. */
export function framed(message: Uint8Array): Uint8Array {
  const frame = Buffer.allocUnsafe(message.length + 5);
  frame.writeUInt8(0, 0);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}

function pathAt(door: Door): string {
  return door === 'json' ? '/order' : createOrderPath;
}

function headersAt(door: Door, { clientId, clientSecret }: Credentials): Record<string, string> {
  const own = { 'x-client-id': clientId, 'x-client-secret': clientSecret };
  switch (door) {
    case 'json':
      return { ...own, 'content-type': 'application/json' };
    case 'connect':
      return { ...own, 'content-type': 'application/json', 'connect-protocol-version': '1' };
    case 'grpc-web':
      return { ...own, 'content-type': 'application/grpc-web+proto', 'x-grpc-web': '1' };
    case 'grpc':
      return { ...own, 'content-type': 'application/grpc+proto', te: 'trailers' };
  }
}

function bodyAt(door: Door, template: Readonly<Record<string, string>>, order: OrderData): Uint8Array {
  const { orderId: order_id, currency: order_currency, note: order_note, name: customer_name, city } = order;
  const { serviceType, email: customer_email } = order;
  const varied = { order_id, order_currency, order_note, customer_name, customer_email, customer_address_city: city };
  if (!isBinary(door)) {
    const amount = new WrittenNumber(order.amount);
    return Buffer.from(writeJson({ ...template, ...varied, service_type: serviceType, order_amount: amount }));
  }
  const message: CreateOrderRequest = create(CreateOrderRequestSchema, {
    ...camelCased({ ...template, ...varied }),
    serviceType: ServiceType[serviceType],
    orderAmount: Number(order.amount),
  });
  return framed(toBinary(CreateOrderRequestSchema, message));
}

/** The members that every order of the run shares with the valid order of the fixtures. */
function textsOf(validOrder: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(validOrder).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  );
}

/** The names of generated Protobuf code, by those of the interface. */
const localNames = new Map(CreateOrderRequestSchema.fields.map(({ name, localName }) => [name, localName]));

function camelCased(texts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [localNames.get(name) ?? name, text]));
}

/**
 * Outcomes of calls that fill the refused part: decided by the call alone, and without an end of the connection, as a body over
 * the limit brings it, because a run would then measure connecting.
 */
const refusedOutcomes = ['invalid_order', 'malformed_json', 'unauthenticated', 'checksum_mismatch'];

/** The refusals that a door can be sent: the fixtures' first calls, as later ones may need what came before. */
function refusalsAt(door: Door, { fixtures }: FixtureSet): FixtureCall[] {
  return fixtures.flatMap(({ calls: [call] }) => {
    if (call === undefined || call.via !== undefined || call.merchant !== 'first') return [];
    const usualAddress = call.method === 'POST' && call.path === undefined;
    const answered = door === 'json' || call.content.kind === 'order';
    const fits = call.protocols.includes(door) && usualAddress && answered && !namesSecond(call);
    return fits && refusedOutcomes.includes(call.expect.outcome) ? [call] : [];
  });
}

function namesSecond(call: FixtureCall): boolean {
  return JSON.stringify([call.headers, call.content]).includes('{{second_');
}

function refusedCall(
  number: number,
  door: Door,
  call: FixtureCall,
  {
    set,
    own,
    settings,
  }: { readonly set: FixtureSet; readonly own: Credentials; readonly settings: { readonly seed: number } },
): LoadCall {
  const orderId = `${orderIdPrefix(settings.seed)}${number}`;
  const { outgoing } = fillCall(call, { merchants: { first: own }, orderId, validOrder: set.validOrder });
  // What a fixture leaves out, such as the credentials, must stay out; only the protocol's own headers are added.
  const { 'x-client-id': _id, 'x-client-secret': _secret, ...protocol } = headersAt(door, own);
  const { 'content-type': chosen, ...headers } = outgoing.headers;
  const type = door === 'json' ? { 'content-type': chosen ?? 'application/json' } : {};
  const binary = isBinary(door) ? binaryOrder(outgoing.order) : undefined;
  if (binary?.ok === false) throw new Error(`a refusal cannot be said at the ${door} door: ${binary.reason}`);
  const bytes = binary === undefined ? outgoing.bytes : framed(toBinary(CreateOrderRequestSchema, binary.message));
  return {
    ...{ number, door, path: pathAt(door), headers: { ...headers, ...protocol, ...type } },
    ...{ body: bytes ?? new Uint8Array(), order: undefined, expected: [call.expect.outcome] },
  };
}
