import { create } from '@bufbuild/protobuf';
import { reflect } from '@bufbuild/protobuf/reflect';
import {
  type CreateOrderRequest,
  CreateOrderRequestSchema,
  ServiceTypeSchema,
} from '@gateway/contract/gateway/v1/order_service_pb';
import { survivesAsDouble, WrittenNumber } from '../fixtures/written-number.ts';

export type BinaryOrder =
  | { readonly ok: true; readonly message: CreateOrderRequest }
  | { readonly ok: false; readonly reason: string };

/**
 * The order as a Protobuf message, or the reason why Protobuf cannot say it: a field of another type, a field without a number,
 * null, a lone surrogate, digits that a double loses. `{ "$double": "NaN" }` and `{ "$enum": 7 }` say what JSON cannot.
 */
export function binaryOrder(order: Readonly<Record<string, unknown>> | undefined): BinaryOrder {
  if (order === undefined) return { ok: false, reason: 'the body is text and not an object of fields' };
  const message = create(CreateOrderRequestSchema);
  const fields = reflect(CreateOrderRequestSchema, message);
  for (const [name, value] of Object.entries(order)) {
    const field = CreateOrderRequestSchema.fields.find((one) => one.name === name);
    if (field === undefined) return { ok: false, reason: `Protobuf has no field ${name}` };
    const said =
      field.fieldKind === 'enum' ? enumNumber(value) : field.name === 'order_amount' ? double(value) : text(value);
    if (said === undefined) return { ok: false, reason: `Protobuf cannot say this value of ${name}` };
    fields.set(field, said);
  }
  return { ok: true, message };
}

/** Whether a value is one that the binary doors alone can send. */
export function isBinaryOnly(value: unknown): boolean {
  return memberOf(value, '$double') !== undefined || memberOf(value, '$enum') !== undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value.isWellFormed() ? value : undefined;
}

function double(value: unknown): number | undefined {
  if (value instanceof WrittenNumber && survivesAsDouble(value)) return Number(value.text);
  const special = memberOf(value, '$double');
  return typeof special === 'string' ? Number(special) : undefined;
}

function enumNumber(value: unknown): number | undefined {
  const number = memberOf(value, '$enum');
  if (number instanceof WrittenNumber) return Number(number.text);
  const named = ServiceTypeSchema.values.find(({ name }) => name === value);
  // The zero value's name is a Protobuf habit that no JSON caller ever writes; `{ "$enum": 0 }` says it.
  return named?.number === 0 ? undefined : named?.number;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
