import type { DescMessage, Message, MessageShape } from '@bufbuild/protobuf';

/**
 * The JSON form of a message: a member for each field, under its API name, so that a response that lacks a field does
 * not compile. The value of an absent field is `undefined`. An int64 is a number, because the API's are at
 * most 2^53 - 1, and an enum is the name of its value.
 */
type JsonForm<Shape extends Message> = {
  readonly [Name in Exclude<keyof Shape, keyof Message> & string as ApiName<Shape, Name>]: JsonValue<Shape[Name]>;
};

/** The JSON form of the message that a descriptor describes. */
export type JsonFormOf<Schema extends DescMessage> = JsonForm<MessageShape<Schema>>;

/** The fields whose names in the API and in Protobuf differ. */
interface RenamedFields {
  'gateway.v1.Event.order': 'data';
}

type ApiName<Shape extends Message, Name extends string> = `${Shape['$typeName']}.${Name}` extends infer Field
  ? Field extends keyof RenamedFields
    ? RenamedFields[Field]
    : SnakeCase<Name>
  : never;

/** `order_id` for `orderId`. */
type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : '';

type JsonValue<Value> = Value extends undefined | string | boolean | Uint8Array
  ? Value
  : Value extends bigint
    ? number
    : Value extends number
      ? number extends Value
        ? number
        : string
      : Value extends Message
        ? JsonForm<Value>
        : // A list or map without entries is absent.
          Value extends readonly (infer Item)[]
          ? readonly JsonValue<Item>[] | undefined
          : Value | undefined;
