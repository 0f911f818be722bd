import { orderCurrencyCodes } from '@gateway/domain/currency';
import { type FailureCode, failures } from '@gateway/domain/failure';
import {
  type FieldRule,
  fieldErrorCodes,
  fieldRules,
  forbiddenControls,
  nonBlank,
  type TextRule,
} from '@gateway/domain/field-rules';
import { amountDecimals, amountHundredthsMax, formatAmount } from '@gateway/domain/money';
import { orderStatuses } from '@gateway/domain/order';
import { type OrderFieldName, orderFieldNames } from '@gateway/domain/order-fields';
import { serviceOrderIdMax } from '@gateway/domain/order-id';
import { orderTokenForm } from '@gateway/domain/order-token';
import { problemMediaType } from '../http/problem.ts';

/** The part of JSON Schema 2020-12 that the reference uses. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly not?: JsonSchema;
  readonly allOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
}

/** What each field means, in the interface's words. Its rule is not told here: it is read from the domain. */
const fieldMeanings: Readonly<Record<OrderFieldName, string>> = {
  order_id: 'Order identifier in your own system: unique among your orders, case-sensitive, the key for safe retries',
  order_amount: `Order amount, a number with up to ${amountDecimals} decimals and no more than the currency has`,
  order_currency: `Currency code of ISO 4217 List One that has a minor unit: ${orderCurrencyCodes.length} codes`,
  order_note: 'Extra free-text detail about the order; line breaks and tabs are allowed',
  service_type: 'DIGITAL for digital services, PHYSICAL_GOODS for shippable goods',
  customer_name: 'Customer name',
  customer_email: 'Customer e-mail address',
  customer_phone: 'Customer contact phone',
  customer_address_line1: 'Customer address, first line',
  customer_address_line2: 'Customer address, extra details; may be absent, null or empty',
  customer_address_city: 'Customer city',
  customer_address_state: 'Customer state',
  customer_address_country: 'Customer country, free text',
  customer_address_postal_code: 'Customer postal code',
  order_checksum: 'Checksum of the order; one that begins with v1= is verified',
  return_url: 'Address on your website to which the customer returns',
};

/** The body of `POST /order`, made from the rules that judge it. */
export const orderSchema: JsonSchema = {
  type: 'object',
  description: 'Lengths count Unicode code points. Text is kept exactly as sent. Unknown members are ignored.',
  required: orderFieldNames.filter((name) => isRequired(fieldRules[name])),
  properties: Object.fromEntries(
    orderFieldNames.map((name) => [name, { description: fieldMeanings[name], ...schemaOf(fieldRules[name]) }]),
  ),
};

/** The six fields that a creation and a look-up answer. */
export const orderAnswerSchema: JsonSchema = {
  type: 'object',
  required: ['service_order_id', 'created_at', 'order_id', 'order_status', 'order_token', 'payment_link'],
  properties: {
    service_order_id: {
      type: 'integer',
      description: 'Identifier of the order assigned by the gateway',
      minimum: 1,
      maximum: serviceOrderIdMax,
    },
    created_at: {
      type: 'string',
      description: 'Creation time in UTC with milliseconds and offset',
      format: 'date-time',
    },
    order_id: { type: 'string', description: 'Your order_id' },
    order_status: { type: 'string', description: 'Status of the order', enum: orderStatuses },
    order_token: {
      type: 'string',
      description: 'Token identifying the order in its payment link',
      pattern: orderTokenForm.source,
    },
    payment_link: { type: 'string', description: 'Where the customer pays', format: 'uri' },
  },
};

/** The facts of the payment page. */
export const paymentSchema: JsonSchema = {
  type: 'object',
  required: [
    ...['merchant_name', 'order_id', 'order_amount', 'order_currency', 'order_note', 'order_status', 'created_at'],
    ...['return_url', 'checkout_url'],
  ],
  properties: {
    merchant_name: { type: 'string', description: 'Who is paid' },
    order_id: { type: 'string', description: 'The order_id of the merchant' },
    order_amount: amountSchema('What is to be paid'),
    order_currency: { type: 'string', description: 'Currency code', enum: orderCurrencyCodes },
    order_note: { type: 'string', description: 'What it is for' },
    order_status: { type: 'string', description: 'Status of the order', enum: orderStatuses },
    created_at: { type: 'string', description: 'Creation time', format: 'date-time' },
    return_url: { type: 'string', description: 'The way back to the merchant, ready to be followed', format: 'uri' },
    checkout_url: {
      type: ['string', 'null'],
      description: 'Where the order is paid; null where the merchant takes over',
      format: 'uri',
    },
  },
};

function isRequired(rule: FieldRule): boolean {
  return rule.kind !== 'text' || rule.required;
}

function schemaOf(rule: FieldRule): JsonSchema {
  switch (rule.kind) {
    case 'amount':
      return amountSchema();
    case 'choice':
      return { type: 'string', enum: rule.values };
    case 'text':
      return textSchema(rule);
  }
}

function amountSchema(description?: string): JsonSchema {
  const bounds = { type: 'number', exclusiveMinimum: 0, maximum: Number(formatAmount(amountHundredthsMax)) };
  return description === undefined ? bounds : { description, ...bounds };
}

/** Each part of the rule as a schema of its own, because a schema has one `pattern` only. */
function textSchema(rule: TextRule): JsonSchema {
  const parts: JsonSchema[] = [
    { description: 'no control characters', not: { type: 'string', pattern: forbiddenControls(rule).source } },
    ...(rule.required ? [{ description: 'at least one non-blank character', pattern: nonBlank.source }] : []),
    ...(rule.characters ? [{ description: rule.characters.told, pattern: rule.characters.pattern.source }] : []),
    ...(rule.format ? [{ description: rule.format.told, pattern: rule.format.pattern.source }] : []),
  ];
  if (!rule.required) return { type: ['string', 'null'], maxLength: rule.lengthMax, allOf: parts };
  return { type: 'string', minLength: rule.lengthMin, maxLength: rule.lengthMax, allOf: parts };
}

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
