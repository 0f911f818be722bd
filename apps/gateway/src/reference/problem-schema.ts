import { type FailureCode, failures } from '@gateway/domain/failure';
import { fieldErrorCodes } from '@gateway/domain/field-rules';
import { orderFieldNames } from '@gateway/domain/order-fields';
import { problemMediaType } from '../http/problem.ts';
import type { JsonSchema } from './json-schema.ts';

/** A refusal: RFC 9457 with the gateway's own members. */
export const problemSchema: JsonSchema = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code', 'request_id'],
  properties: {
    type: { type: 'string', format: 'uri', description: 'The page that explains the code' },
    title: { type: 'string', description: 'A summary for people' },
    status: { type: 'integer', description: 'The HTTP status' },
    detail: { type: 'string', description: 'What happened this time, for your developer' },
    code: { type: 'string', enum: Object.keys(failures), description: 'What to decide on' },
    request_id: { type: 'string', description: 'What the operators find the request by; the header x-request-id' },
    errors: {
      type: 'array',
      description: 'invalid_order: every broken field, in the order of the interface',
      items: {
        type: 'object',
        required: ['field', 'code', 'message'],
        properties: {
          field: { type: 'string', enum: orderFieldNames },
          code: { type: 'string', enum: fieldErrorCodes },
          message: { type: 'string' },
        },
      },
    },
    fields: {
      type: 'array',
      description: 'order_id_conflict: the fields that differ',
      items: { type: 'string', enum: orderFieldNames },
    },
    canonical_text: { type: 'string', description: 'checksum_mismatch: the text that the gateway hashed' },
  },
};

/** One response of an operation. */
export interface ResponseObject {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: JsonSchema }>>;
  readonly content: Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>>;
}

const retryAfter: NonNullable<ResponseObject['headers']> = {
  'Retry-After': {
    description: 'With `rate_limited` and `overloaded`: the seconds to wait before the next try',
    schema: { type: 'integer', minimum: 1 },
  },
};

/** The responses of some refusals, by their status. A page is what a browser is told. */
export function refusalResponses(
  codes: readonly FailureCode[],
  page: ResponseObject['content'] = {},
): Record<string, ResponseObject> {
  const byStatus = Map.groupBy(codes, (code) => String(failures[code].httpStatus));
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      status,
      {
        description: ofStatus.map((code) => `\`${code}\`: ${failures[code].when}`).join('\n\n'),
        ...(ofStatus.some((code) => code === 'rate_limited' || code === 'overloaded') ? { headers: retryAfter } : {}),
        content: { ...page, [problemMediaType]: { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    ]),
  );
}
