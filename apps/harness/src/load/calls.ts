import { create, toBinary } from '@bufbuild/protobuf';
import { encodeEnvelope } from '@connectrpc/connect/protocol';
import {
  type CreateOrderRequest,
  CreateOrderRequestSchema,
  ServiceType,
} from '@gateway/contract/gateway/v1/order_service_pb';
import type { Credentials } from '@gateway/domain/credentials';
import { binaryMessage } from '@gateway/fixtures/binary-message';
import { fillCall } from '@gateway/fixtures/fill-call';
import type { FixtureCall } from '@gateway/fixtures/fixture';
import { JsonNumber, writeJson } from '@gateway/fixtures/json-number';
import type { FixtureSet } from '@gateway/fixtures/load-fixtures';
import { isBinary, operations, type Protocol, protocols, rpcPath } from '@gateway/fixtures/operations';
import { seededAt } from '@gateway/fixtures/seeded';
import { createOrders, orderIdPrefix } from '../workload/orders.ts';
import type { LoadSettings } from './profile.ts';

/** One call, ready to be sent in its protocol. */
export interface LoadCall {
  readonly protocol: Protocol;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Encoded as the protocol needs it, envelope included. */
  readonly body: Uint8Array;
  /** The order that the call creates or repeats, by its number in the run; `undefined` for a call that must fail. */
  readonly order: { readonly number: number; readonly orderId: string } | undefined;
  /** The outcomes that are right. */
  readonly expected: readonly string[];
}

/** The settings that decide a run's calls. */
export type CallSettings = Pick<LoadSettings, 'protocol' | 'merchants' | 'replay_share' | 'invalid_share' | 'seed'>;

/** Draws for different questions about one call come from indexes far apart. */
const kindIndex = 0x20000000;
const sourceIndex = 0x40000000;

/** A repeated order is one of about so many calls ago: a client without a response retries soon. */
const replayReach = 500;

const successes = ['created', 'replayed'] as const;

/** What kind of call a number is. */
export function kindOf(settings: CallSettings, number: number): 'new' | 'replay' | 'invalid' {
  const drawn = seededAt(settings.seed, kindIndex + number).fraction();
  if (drawn < settings.invalid_share) return 'invalid';
  return drawn < settings.invalid_share + settings.replay_share ? 'replay' : 'new';
}

/** The number of the order that a valid call carries: its own, or an earlier call's for a repeated order. */
export function orderNumberOf(settings: CallSettings, number: number): number {
  if (kindOf(settings, number) === 'new' || number === 0) return number;
  let earlier = number - 1 - seededAt(settings.seed, sourceIndex + number).below(Math.min(number, replayReach));
  while (earlier >= 0 && kindOf(settings, earlier) !== 'new') earlier -= 1;
  return earlier >= 0 ? earlier : number;
}

/** Returns a function that makes a run's calls, each from its number alone, so that a second run makes the same ones. */
export function createCallMaker(
  settings: CallSettings,
  set: FixtureSet,
  credentials: readonly Credentials[],
): (number: number) => LoadCall {
  const choices = settings.protocol === 'mixed' ? protocols : ([settings.protocol] as const);
  const failing = new Map(choices.map((protocol) => [protocol, failingCalls(protocol, set)]));
  const orderOf = createOrders(set.validOrder, settings);
  return (number) => {
    const random = seededAt(settings.seed, number);
    const protocol = random.pick(choices);
    if (kindOf(settings, number) === 'invalid') {
      const own = credentialsOf(credentials, random.below(settings.merchants));
      const [first, ...others] = failing.get(protocol) ?? [];
      if (first === undefined) throw new Error(`there is no failing fixture for ${protocol}`);
      const orderId = `${orderIdPrefix(settings.seed)}${number}`;
      return failingCall(protocol, random.pick([first, ...others]), { set, own, orderId });
    }
    const orderNumber = orderNumberOf(settings, number);
    const { merchant, fields } = orderOf(orderNumber);
    return {
      ...{ protocol, path: pathOf(protocol), headers: headersOf(protocol, credentialsOf(credentials, merchant)) },
      body: bodyOf(protocol, fields),
      order: { number: orderNumber, orderId: fields.order_id ?? '' },
      expected: successes,
    };
  };
}

function credentialsOf(credentials: readonly Credentials[], merchant: number): Credentials {
  const own = credentials[merchant];
  if (own === undefined) throw new Error(`there are no credentials for merchant ${merchant}`);
  return own;
}

function pathOf(protocol: Protocol): string {
  return protocol === 'json' ? '/order' : rpcPath(operations.CreateOrder.rpc);
}

const protocolHeaders: Readonly<Record<Protocol, Readonly<Record<string, string>>>> = {
  json: { 'content-type': 'application/json' },
  connect: { 'content-type': 'application/json', 'connect-protocol-version': '1' },
  'grpc-web': { 'content-type': 'application/grpc-web+proto', 'x-grpc-web': '1' },
  grpc: { 'content-type': 'application/grpc+proto', te: 'trailers' },
};

function headersOf(protocol: Protocol, { clientId, clientSecret }: Credentials): Record<string, string> {
  return { 'x-client-id': clientId, 'x-client-secret': clientSecret, ...protocolHeaders[protocol] };
}

function bodyOf(protocol: Protocol, fields: Readonly<Record<string, string>>): Uint8Array {
  const { order_amount: amount = '', service_type: serviceType, ...texts } = fields;
  if (!isBinary(protocol)) return Buffer.from(writeJson({ ...fields, order_amount: new JsonNumber(amount) }));
  const message = create(CreateOrderRequestSchema, {
    ...Object.fromEntries(Object.entries(texts).map(([name, text]) => [localNames.get(name) ?? name, text])),
    serviceType: ServiceType[serviceType as 'DIGITAL' | 'PHYSICAL_GOODS'],
    orderAmount: Number(amount),
  });
  return enveloped(message);
}

/** The names of fields in generated Protobuf code, by those of the interface. */
const localNames = new Map(CreateOrderRequestSchema.fields.map(({ name, localName }) => [name, localName]));

function enveloped(message: CreateOrderRequest): Uint8Array {
  return encodeEnvelope(0, toBinary(CreateOrderRequestSchema, message));
}

/**
 * Outcomes of the calls that must fail: decided by the call alone, and without closing the connection, as a body above the
 * limit does, because a run would then measure connecting.
 */
const failingOutcomes = ['invalid_order', 'malformed_json', 'unauthenticated', 'checksum_mismatch'];

/** The failing calls that a protocol can carry: the first calls of fixtures, as later ones may depend on them. */
function failingCalls(protocol: Protocol, { fixtures }: FixtureSet): FixtureCall[] {
  return fixtures.flatMap(({ calls: [call], merchants }) => {
    if (call?.operation !== 'CreateOrder' || call.via !== undefined || call.path !== undefined) return [];
    const fits = call.protocols.includes(protocol) && [...merchants].every((name) => name === 'first');
    return fits && failingOutcomes.includes(call.expect.outcome) ? [call] : [];
  });
}

function failingCall(
  protocol: Protocol,
  call: FixtureCall,
  { set, own, orderId }: { readonly set: FixtureSet; readonly own: Credentials; readonly orderId: string },
): LoadCall {
  const context = {
    merchants: { first: own },
    orderId,
    validOrder: set.validOrder,
    startedAtMs: 0,
    responses: [],
  };
  const { outgoing } = fillCall(call, context);
  // The fixture decides about credentials, and over JSON about the media type; the rest is the protocol's.
  const headers = { ...outgoing.headers, ...(protocol === 'json' ? {} : protocolHeaders[protocol]) };
  const body = isBinary(protocol)
    ? enveloped(binaryMessage(CreateOrderRequestSchema, outgoing.request))
    : (outgoing.bytes ?? new Uint8Array());
  return { protocol, path: pathOf(protocol), headers, body, order: undefined, expected: [call.expect.outcome] };
}
