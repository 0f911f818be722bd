import { orderCurrencyCodes } from '@gateway/domain/currency';
import { failures } from '@gateway/domain/failure';
import { type FieldRule, fieldErrorCodes, fieldRules, forbiddenControls, nonBlank } from '@gateway/domain/field-rules';
import { timePattern } from '@gateway/domain/iso-time';
import { merchantModes } from '@gateway/domain/merchant';
import { amountDecimals, amountHundredthsMax, formatAmount } from '@gateway/domain/money';
import { orderStatuses } from '@gateway/domain/order';
import { type OrderFieldName, orderFieldNames, serviceTypes } from '@gateway/domain/order-fields';
import { eventTypes } from '@gateway/domain/order-states';
import { orderTokenForm } from '@gateway/domain/order-token';
import { serviceOrderIdMax } from '@gateway/domain/service-order-id';

/** The part of JSON Schema 2020-12 that the reference uses. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly default?: number;
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

const amountBounds: JsonSchema = {
  type: 'number',
  exclusiveMinimum: 0,
  maximum: Number(formatAmount(amountHundredthsMax)),
};

/** What each field means, in the interface's words. Its rule comes from the domain. */
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

/** A time that a client sends. */
export const timeSchema: JsonSchema = { type: 'string', pattern: timePattern.source };

const orderStatus = text('Status of the order', { enum: orderStatuses });
const createdAt = momentOf('Creation time in UTC with milliseconds and offset');

const responseProperties = {
  service_order_id: {
    type: 'integer',
    description: 'Identifier of the order assigned by the gateway',
    minimum: 1,
    maximum: serviceOrderIdMax,
  },
  created_at: createdAt,
  order_id: text('Your order_id'),
  order_status: orderStatus,
  order_token: text('Token identifying the order in its payment link', { pattern: orderTokenForm.source }),
  payment_link: text('Where the customer pays', { format: 'uri' }),
};

const amount: JsonSchema = { description: 'The amount', ...amountBounds };
const currency = text('Currency code', { enum: orderCurrencyCodes });
const expiresAt = momentOf('The end of the order; absent if it never expires');
const paidAt = momentOf('When the customer paid; absent unless PAID');
const cancelledAt = momentOf('When the merchant cancelled; absent unless CANCELLED');
const mode = text('Whether the merchant’s orders move money', { enum: merchantModes });

/** All types of the JSON API, by their names in the reference. */
export const schemas = {
  /** Made from the rules that validate the body of `POST /order`. */
  Order: {
    type: 'object',
    description: 'Lengths count Unicode code points. Text is stored exactly as sent. Unknown members are ignored.',
    required: orderFieldNames.filter((name) => fieldRules[name].kind !== 'text' || fieldRules[name].required),
    properties: {
      ...Object.fromEntries(
        orderFieldNames.map((name) => [name, { description: fieldMeanings[name], ...schemaOf(fieldRules[name]) }]),
      ),
      order_expires_at: {
        description:
          'The end of the order, ISO 8601 with an offset, 1 minute to 366 days ahead: from then on it is EXPIRED. Without it your default lifetime applies, or the order never expires',
        ...timeSchema,
        type: ['string', 'null'],
      },
    },
  } as JsonSchema,
  OrderResponse: objectOf(responseProperties),
  OrderRecord: objectOf(
    {
      ...responseProperties,
      order_status: { ...orderStatus, description: 'Status of the order as of now; in an event as of the event' },
      mode,
      order_amount: amount,
      order_currency: currency,
      order_note: text('Your text about the order'),
      service_type: text('What the order is for', { enum: serviceTypes }),
    },
    {
      order_expires_at: expiresAt,
      paid_at: paidAt,
      payment_id: text('The checkout system’s id of the payment; absent unless PAID'),
      cancelled_at: cancelledAt,
    },
  ),
  OrderPage: objectOf(
    { orders: { type: 'array', description: 'Newest first', items: { $ref: '#/components/schemas/OrderRecord' } } },
    { next_cursor: text('The cursor of the next page; absent on the last page') },
  ),
  Event: objectOf({
    id: text('Id of the event; the header webhook-id', { pattern: '^evt_[0-9a-f]{32}$' }),
    type: text('What happened', { enum: eventTypes }),
    timestamp: momentOf('When the change was stored'),
    data: { description: 'The order as it was after the change', $ref: '#/components/schemas/OrderRecord' },
  }),
  EventPage: objectOf({
    events: { type: 'array', description: 'Oldest first', items: { $ref: '#/components/schemas/Event' } },
    next_cursor: text('The cursor for what comes next. Store it: later events follow it, even after an empty page'),
  }),
  Payment: objectOf(
    {
      merchant_name: text('Who is paid'),
      mode,
      order_id: text('The order_id of the merchant'),
      order_amount: amount,
      order_currency: currency,
      order_note: text('What the payment is for'),
      order_status: orderStatus,
      created_at: createdAt,
      return_url: text('Link back to the merchant, complete with its parameters', { format: 'uri' }),
      checkout_url: {
        type: ['string', 'null'],
        description: 'Where the order is paid; null if that is not possible here',
        format: 'uri',
      },
    },
    { order_expires_at: expiresAt, paid_at: paidAt, cancelled_at: cancelledAt },
  ),
  Problem: objectOf(
    {
      type: text('The page that explains the code', { format: 'uri' }),
      title: text('A summary for people'),
      status: { type: 'integer', description: 'The HTTP status' },
      detail: text('What happened this time, for your developer'),
      code: text('The code for programs to decide by', { enum: Object.keys(failures) }),
      request_id: text('The id of the request in the gateway’s log; the header x-request-id'),
    },
    {
      errors: {
        type: 'array',
        description:
          'invalid_order: every invalid field, in the order of the interface. invalid_request: every invalid parameter',
        items: objectOf({
          field: text('The name of the field or parameter'),
          code: { type: 'string', enum: fieldErrorCodes },
          message: { type: 'string' },
        }),
      },
      fields: {
        type: 'array',
        description: 'order_id_conflict: the fields that differ',
        items: { type: 'string', enum: [...orderFieldNames, 'order_expires_at'] },
      },
      canonical_text: text('checksum_mismatch: the text that the gateway hashed'),
    },
  ),
};

/** An object with properties that it always has, and others that it may have. */
function objectOf(
  required: Readonly<Record<string, JsonSchema>>,
  optional: Readonly<Record<string, JsonSchema>> = {},
): JsonSchema {
  return { type: 'object', required: Object.keys(required), properties: { ...required, ...optional } };
}

/** A time in a response: `2026-11-20T21:01:42.172+00:00`. */
function momentOf(description: string): JsonSchema {
  return text(description, { format: 'date-time' });
}

function text(description: string, more: JsonSchema = {}): JsonSchema {
  return { type: 'string', description, ...more };
}

/** A field's rule as a schema. Each part of a text rule is a schema of its own, because a schema has only one `pattern`. */
function schemaOf(rule: FieldRule): JsonSchema {
  if (rule.kind === 'amount') return amountBounds;
  if (rule.kind === 'choice') return { type: 'string', enum: rule.values };
  const { required, lengthMin, lengthMax, characters, format } = rule;
  const allOf: JsonSchema[] = [
    { description: 'no control characters', not: { type: 'string', pattern: forbiddenControls(rule).source } },
    ...(required ? [{ description: 'at least one non-blank character', pattern: nonBlank.source }] : []),
    ...[characters, format].flatMap((part) =>
      part === undefined ? [] : [{ description: part.message, pattern: part.pattern.source }],
    ),
  ];
  if (!required) return { type: ['string', 'null'], maxLength: lengthMax, allOf };
  return { type: 'string', minLength: lengthMin, maxLength: lengthMax, allOf };
}
