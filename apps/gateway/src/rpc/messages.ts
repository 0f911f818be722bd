import { create, type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf';
import type { Members } from '../calls/operation.ts';

// Converts between Protobuf messages and plain objects with the field names of the API. Each converter is built once
// per message type, so that calls need no reflection.

type Fields = Record<string, unknown>;

/** A message of any type. Its fields are known only from its descriptor. */
type AnyMessage = Message & Fields;

/**
 * Returns a reader of a request message. An unset field becomes `undefined`, an enum's value becomes its name, and any
 * other value stays as Protobuf reads it. The domain's rules then apply to the members as to those of a JSON body.
 */
export function memberReader(schema: DescMessage): (message: Message) => Members {
  const unset = Object.fromEntries(schema.fields.map(({ jsonName }) => [jsonName, undefined]));
  const fields = schema.fields.map((field) => ({
    name: field.jsonName,
    localName: field.localName,
    oneof: field.oneof?.localName,
    convert: field.enum === undefined ? undefined : wordReader(field.enum.values),
  }));
  return (message: AnyMessage) => {
    // Starts with all members, because adding them one by one would change the object's hidden class each time.
    const members: Fields = { ...unset };
    for (const { name, localName, oneof, convert } of fields) {
      const value = oneof === undefined ? message[localName] : valueInOneof(message, oneof, localName);
      if (value !== undefined) members[name] = convert === undefined ? value : convert(value);
    }
    return members;
  };
}

/** Returns the value of a field in a oneof; `undefined` if another field is set. */
function valueInOneof(message: AnyMessage, oneof: string, localName: string): unknown {
  const choice: { case?: string; value?: unknown } = Object(message[oneof]);
  return choice.case === localName ? choice.value : undefined;
}

/** Returns a reader of an enum's number as its name. By Protobuf's convention, zero means that the field is not set. */
function wordReader(values: readonly { readonly number: number; readonly name: string }[]) {
  const words = new Map<unknown, string | undefined>(
    values.map(({ number, name }) => [number, number === 0 ? undefined : name]),
  );
  // A number that this version does not know is passed on, so that the domain's rules reject it as an invalid value.
  return (number: unknown) => (words.has(number) ? words.get(number) : String(number));
}

/** Returns a builder of a response message from its JSON form. Members that the message does not have are dropped. */
export function messageBuilder(schema: DescMessage): (value: object) => Message {
  const fields = schema.fields.map((field) => ({
    name: field.jsonName,
    localName: field.localName,
    convert: converterOf(field),
  }));
  return (value) => {
    const message: AnyMessage = create(schema);
    for (const { name, localName, convert } of fields) {
      const member = (value as Fields)[name];
      if (member === undefined) continue;
      message[localName] = convert === undefined ? member : convert(member);
    }
    return message;
  };
}

function converterOf(field: DescField): ((value: unknown) => unknown) | undefined {
  if (field.message !== undefined) {
    const build = messageBuilder(field.message);
    return field.fieldKind === 'list' ? (values) => (values as object[]).map(build) : (value) => build(value as object);
  }
  if (field.enum !== undefined) {
    const numbers = new Map(field.enum.values.map(({ name, number }) => [name, number]));
    return (word) => numbers.get(String(word));
  }
  const isInt64 = field.fieldKind === 'scalar' && field.scalar === ScalarType.INT64;
  return isInt64 ? (number) => BigInt(Number(number)) : undefined;
}
