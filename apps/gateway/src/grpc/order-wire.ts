import { ScalarType } from '@bufbuild/protobuf';
import { getTextEncoding } from '@bufbuild/protobuf/wire';
import {
  CreateOrderRequestSchema,
  CreateOrderResponseSchema,
  OrderStatus,
  ServiceType,
  ServiceTypeSchema,
} from '@gateway/contract/gateway/v1/order_service_pb';
import { type OrderFieldName, serviceTypes } from '@gateway/domain/order-fields';
import type { OrderInput } from '@gateway/domain/parse-order';
import type { OrderAnswer } from '../order-answer.ts';

// The two messages of CreateOrder without reflection (decision 015). Read is only what ordinary clients send, written only what
// is printable ASCII: the rest, and every refusal, is left to the library.

// Wire types (protobuf.dev/programming-guides/encoding).
const varint = 0;
const fixed64 = 1;
const lengthDelimited = 2;

interface WireField {
  readonly name: OrderFieldName;
  readonly wireType: number;
}

/** The fields of a CreateOrderRequest at their numbers; one of another type is not among them, and unknown here. */
const requestFields: WireField[] = [];
for (const { number, jsonName, scalar, enum: values } of CreateOrderRequestSchema.fields) {
  const name = jsonName as OrderFieldName;
  if (scalar === ScalarType.STRING) requestFields[number] = { name, wireType: lengthDelimited };
  else if (scalar === ScalarType.DOUBLE) requestFields[number] = { name, wireType: fixed64 };
  else if (values === ServiceTypeSchema) requestFields[number] = { name, wireType: varint };
}

/** The names of service types at their numbers; 0 stands for one that is not set. */
const serviceTypeNames: (string | undefined)[] = [undefined];
for (const name of serviceTypes) serviceTypeNames[ServiceType[name]] = name;

const noInput = Object.fromEntries(CreateOrderRequestSchema.fields.map(({ jsonName }) => [jsonName, undefined])) as {
  [Name in OrderFieldName]: unknown;
};

/** Reads a CreateOrderRequest. `undefined` where it is not an ordinary one: broken, or with fields or sizes nobody sends us. */
export function readOrderInput(data: Buffer): OrderInput | undefined {
  const input = { ...noInput };
  const varints = new VarintReader(data);
  const text = data.toString('latin1');
  while (varints.at < data.length) {
    const tag = varints.next();
    const field = requestFields[tag >> 3];
    if (field === undefined || field.wireType !== (tag & 7)) return undefined;
    if (field.wireType === fixed64) {
      if (varints.at + 8 > data.length) return undefined;
      input[field.name] = data.readDoubleLE(varints.at);
      varints.at += 8;
      continue;
    }
    const value = varints.next();
    if (field.wireType === varint) {
      if (value < 0 || value >= serviceTypeNames.length) return undefined;
      input[field.name] = serviceTypeNames[value];
      continue;
    }
    const start = varints.at;
    varints.at += value;
    if (value < 0 || varints.at > data.length) return undefined;
    const words = isAscii(data, start, varints.at) ? text.slice(start, varints.at) : utf8(data, start, varints.at);
    if (words === undefined) return undefined;
    input[field.name] = words;
  }
  return input;
}

class VarintReader {
  readonly #data: Buffer;
  at = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  /** The next varint; -1 where it is longer than two bytes or cut, so above 16,383 at the most. */
  next(): number {
    const first = this.#data[this.at++] ?? 0x80;
    if (first < 0x80) return first;
    const second = this.#data[this.at++] ?? 0x80;
    return second < 0x80 ? first - 0x80 + second * 0x80 : -1;
  }
}

function isAscii(data: Buffer, start: number, end: number): boolean {
  let bits = 0;
  for (let at = start; at < end; at += 1) bits |= data[at] ?? 0;
  return bits < 0x80;
}

function utf8(data: Buffer, start: number, end: number): string | undefined {
  try {
    return getTextEncoding().decodeUtf8(data.subarray(start, end), true);
  } catch {
    return undefined;
  }
}

const tagOf = (name: string, wireType: number) => {
  const field = CreateOrderResponseSchema.fields.find(({ jsonName }) => jsonName === name);
  if (field === undefined) throw new Error(`CreateOrderResponse has no ${name}`);
  return String.fromCharCode((field.number << 3) | wireType);
};

const idTag = tagOf('service_order_id', varint);
const createdAtTag = tagOf('created_at', lengthDelimited);
const orderIdTag = tagOf('order_id', lengthDelimited);
const statusTag = tagOf('order_status', varint);
const tokenTag = tagOf('order_token', lengthDelimited);
const linkTag = tagOf('payment_link', lengthDelimited);

/** Writes a CreateOrderResponse, each byte as a character of that number. `undefined` where a text is not printable ASCII. */
export function writeOrderAnswer(answer: OrderAnswer): string | undefined {
  if (!printableAscii.test(answer.order_id) || !printableAscii.test(answer.payment_link)) return undefined;
  const id = idTag + varintOf(answer.service_order_id);
  const status = statusTag + varintOf(OrderStatus[answer.order_status]);
  return (
    id +
    textOf(createdAtTag, answer.created_at) +
    textOf(orderIdTag, answer.order_id) +
    status +
    textOf(tokenTag, answer.order_token) +
    textOf(linkTag, answer.payment_link)
  );
}

const printableAscii = /^[ -~]*$/;

function textOf(tag: string, text: string): string {
  return text === '' ? '' : tag + varintOf(text.length) + text;
}

/** A whole number from 0 to 2^53 - 1. */
function varintOf(value: number): string {
  let bytes = '';
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes += String.fromCharCode((rest % 0x80) | 0x80);
  return bytes + String.fromCharCode(rest);
}
