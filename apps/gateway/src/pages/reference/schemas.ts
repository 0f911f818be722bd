import { type DescField, type DescMessage, type DescMethodUnary, ScalarType } from '@bufbuild/protobuf';
import { comments } from '@order-gateway/contract/comments';
import { errorCatalogue } from '@order-gateway/contract/errors';
import { OrderSchema } from '@order-gateway/contract/gateway/v1/order_pb';
import { CreateOrderRequestSchema } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { jsonRouteOf, methods } from '@order-gateway/contract/operations';
import { brandFieldNames, brandRules, merchantModes } from '@order-gateway/domain/accounts';
import { eventIdForm, eventTypes } from '@order-gateway/domain/events';
import { orderTokenForm } from '@order-gateway/domain/links';
import { amountHundredthsMax, formatAmount, orderCurrencyCodes } from '@order-gateway/domain/money';
import {
  fieldRules,
  metadataKeyPattern,
  metadataLimits,
  metadataValueRule,
  orderFieldNames,
  refusalCodes,
  serviceOrderIdMax,
} from '@order-gateway/domain/orders';
import {
  type FieldRule,
  fieldErrorCodes,
  forbiddenControls,
  nonBlank,
  pageLimit,
  timePattern,
} from '@order-gateway/domain/requests';
import { allEventTypes, deliveryStatuses, endpointIdForm, endpointStatuses } from '@order-gateway/domain/webhooks';
import { sharedMembers } from '../payment-page/payment-page.ts';

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
  readonly additionalProperties?: JsonSchema;
  readonly propertyNames?: JsonSchema;
  readonly maxProperties?: number;
}

const amount: JsonSchema = {
  type: 'number',
  exclusiveMinimum: 0,
  maximum: Number(formatAmount(amountHundredthsMax)),
};
const time: JsonSchema = { format: 'date-time' };
const isTime = /_(at|until)$/;
const requestTime: JsonSchema = { pattern: timePattern.source };

/** Details of fields that the contract's types don't express, by the field's name, or by its message and name. */
const constraints: Readonly<Record<string, JsonSchema>> = {
  ...Object.fromEntries(orderFieldNames.map((name) => [`CreateOrderRequest.${name}`, ruleSchema(fieldRules[name])])),
  service_order_id: { minimum: 1, maximum: serviceOrderIdMax },
  order_token: { pattern: orderTokenForm.source },
  order_amount: amount,
  order_currency: { enum: orderCurrencyCodes },
  mode: { enum: merchantModes },
  timestamp: time,
  payment_link: { format: 'uri' },
  return_url: { format: 'uri' },
  limit: { minimum: 1, maximum: pageLimit.max, default: pageLimit.byDefault },
  created_from: requestTime,
  created_to: requestTime,
  url: { format: 'uri' },
  logo: { format: 'byte' },
  logo_url: { format: 'uri' },
  ...Object.fromEntries(brandFieldNames.map((name) => [`UpdateBrandRequest.${name}`, ruleSchema(brandRules[name])])),
  failing_since: time,
  failed_since: requestTime,
  event_types: { items: { type: 'string', enum: [allEventTypes, ...eventTypes] } },
  'WebhookEndpoint.id': { pattern: endpointIdForm.source },
  'WebhookEndpoint.status': { enum: endpointStatuses },
  'UpdateWebhookEndpointRequest.status': { enum: endpointStatuses },
  'WebhookDelivery.type': { enum: eventTypes },
  'WebhookDelivery.status': { enum: deliveryStatuses },
  'ListOrdersRequest.currency': { enum: orderCurrencyCodes },
  'ListWebhookDeliveriesRequest.status': { enum: deliveryStatuses },
  'RefusedPayment.amount': amount,
  'RefusedPayment.currency': { enum: orderCurrencyCodes },
  'RefusedPayment.code': { enum: refusalCodes },
  'CreateOrderRequest.metadata': {
    type: ['object', 'null'],
    additionalProperties: ruleSchema(metadataValueRule),
    propertyNames: { pattern: metadataKeyPattern.source, not: { enum: ['__proto__'] } },
    maxProperties: metadataLimits.keys,
  },
  'Event.id': { pattern: eventIdForm.source },
  'Event.type': { enum: eventTypes },
  // Without `handling=strict`, an invalid locale is ignored, so the schema has no pattern.
  'CreateOrderRequest.customer_locale': { type: ['string', 'null'] },
  'CreateOrderRequest.order_expires_at': { ...requestTime, type: ['string', 'null'] },
  'GetOrderRequest.order_id': lengthOf(fieldRules.order_id),
  'CancelOrderRequest.order_id': lengthOf(fieldRules.order_id),
  'RecordManualPaymentRequest.order_id': lengthOf(fieldRules.order_id),
};

/** Returns the schema that a field of the contract has in the JSON API. */
export function fieldSchema(field: DescField): JsonSchema {
  const { parent, name } = field;
  const description = comments[`${parent.typeName}.${name}`] ?? '';
  const fieldConstraints =
    constraints[`${parent.name}.${name}`] ?? constraints[name] ?? (isTime.test(name) ? time : {});
  return { description, ...typeOf(field), ...fieldConstraints };
}

function typeOf(field: DescField): JsonSchema {
  switch (field.fieldKind) {
    case 'scalar':
      return { type: scalarTypes[field.scalar] ?? 'string' };
    case 'enum':
      return { type: 'string', enum: field.enum.values.slice(1).map(({ name }) => name) };
    case 'map':
      return { type: 'object', additionalProperties: { type: 'string' } };
    case 'message':
      return refTo(field.message.name);
    case 'list':
      if (field.listKind === 'message') return { type: 'array', items: refTo(field.message.name) };
      return { type: 'array', items: { type: 'string' } };
  }
  throw new Error(`no schema for the type of ${field}`);
}

const scalarTypes: Partial<Record<ScalarType, string>> = {
  [ScalarType.BOOL]: 'boolean',
  [ScalarType.DOUBLE]: 'number',
  [ScalarType.INT32]: 'integer',
  [ScalarType.INT64]: 'integer',
};

export function refTo(schema: string): JsonSchema {
  return { $ref: `#/components/schemas/${schema}` };
}

/**
 * Returns the schema of a message. A response always has all fields except those that {@link isOptional} accepts.
 */
function messageSchema(message: DescMessage): JsonSchema {
  return {
    type: 'object',
    description: comments[message.typeName] ?? '',
    required: message.fields.filter((field) => !isOptional(field)).map(({ jsonName }) => jsonName),
    properties: Object.fromEntries(message.fields.map((field) => [field.jsonName, fieldSchema(field)])),
  };
}

/**
 * The required members of bodies. The contract declares all of them as `optional`, so that an absent member can be
 * detected.
 */
const requiredMembers: Readonly<Record<string, readonly string[]>> = {
  CreateOrderRequest: orderFieldNames.filter((name) => fieldRules[name].kind !== 'text' || fieldRules[name].required),
  CreateWebhookEndpointRequest: ['url'],
  RedeliverFailedWebhooksRequest: ['failed_since'],
};

/** Returns the schema of a request body, without the fields that are in the path. */
function bodySchema(message: DescMessage, path: string): JsonSchema {
  const { properties = {}, ...schema } = messageSchema(message);
  const inBody = Object.entries(properties).filter(([name]) => !path.includes(`{${name}}`));
  return { ...schema, required: requiredMembers[message.name] ?? [], properties: Object.fromEntries(inBody) };
}

/** Returns the message that the body of a JSON response contains. */
export function responseMessageOf(method: DescMethodUnary): DescMessage {
  const { responseField } = jsonRouteOf(method) ?? {};
  return method.output.fields.find(({ name }) => name === responseField)?.message ?? method.output;
}

/** Returns a message and all messages inside it. */
function withMembers(message: DescMessage): DescMessage[] {
  return [
    message,
    ...message.fields.flatMap((field) => (field.message === undefined ? [] : withMembers(field.message))),
  ];
}

/** Returns the schemas of the bodies of all JSON routes, by message. */
function bodySchemas(): Readonly<Record<string, JsonSchema>> {
  const schemasByMessage: Record<string, JsonSchema> = {};
  for (const method of Object.values(methods)) {
    const route = jsonRouteOf(method);
    if (route === undefined) continue;
    if (route.hasBody) schemasByMessage[method.input.name] = bodySchema(method.input, route.path);
    for (const message of withMembers(responseMessageOf(method)))
      schemasByMessage[message.name] ??= messageSchema(message);
  }
  return schemasByMessage;
}

/** Whether a response omits a field that has no value. It omits every map and every list of an order if it is empty. */
function isOptional({ parent, proto, fieldKind }: DescField): boolean {
  return proto.proto3Optional || fieldKind === 'map' || (fieldKind === 'list' && parent.name === 'Order');
}

/**
 * All types of the JSON API, by their names in the reference. The types of the payment page and of errors have no
 * message in the contract.
 */
export const schemas: Readonly<Record<string, JsonSchema>> = {
  ...bodySchemas(),
  Payment: objectOf(
    {
      merchant_name: text('The name of the merchant that the customer pays.'),
      ...sharedProperties(true),
      return_url: text('The link back to the merchant, including its parameters.', { format: 'uri' }),
      checkout_url: {
        type: ['string', 'null'],
        description: 'The page of the checkout where the customer pays, or null if the order cannot be paid online.',
        format: 'uri',
      },
    },
    {
      ...sharedProperties(false),
      brand: refTo('Brand'),
    },
  ),
  Problem: objectOf(
    {
      type: text('The page that explains the code.', { format: 'uri' }),
      title: text('A short summary for people.'),
      status: { type: 'integer', description: 'The HTTP status.' },
      detail: text('An explanation of this error, for developers.'),
      code: text('The error code, for programs.', { enum: Object.keys(errorCatalogue) }),
      request_id: text("The id of the request in the gateway's log and in the header x-request-id."),
    },
    {
      errors: {
        type: 'array',
        description: 'With `invalid_order`, every invalid field; with `invalid_request`, every invalid parameter.',
        items: objectOf({
          field: text('The name of the field or parameter.'),
          code: { type: 'string', enum: fieldErrorCodes },
          message: { type: 'string' },
        }),
      },
      fields: {
        type: 'array',
        description: 'With `order_id_conflict`, the fields that differ.',
        items: { type: 'string', enum: CreateOrderRequestSchema.fields.map(({ name }) => name) },
      },
      canonical_text: text('With `checksum_mismatch`, the text that the gateway hashed.'),
    },
  ),
};

/** Returns the properties that the payment page shares with the order record: the required or the optional ones. */
function sharedProperties(areRequired: boolean): Readonly<Record<string, JsonSchema>> {
  const { properties = {}, required = [] } = messageSchema(OrderSchema);
  const names: readonly string[] = sharedMembers.filter((name) => required.includes(name) === areRequired);
  return Object.fromEntries(Object.entries(properties).filter(([name]) => names.includes(name)));
}

/** Returns the schema of an object with required and optional properties. */
function objectOf(
  required: Readonly<Record<string, JsonSchema>>,
  optional: Readonly<Record<string, JsonSchema>> = {},
): JsonSchema {
  return { type: 'object', required: Object.keys(required), properties: { ...required, ...optional } };
}

function text(description: string, constraint: JsonSchema = {}): JsonSchema {
  return { type: 'string', description, ...constraint };
}

function lengthOf({ lengthMin, lengthMax }: { readonly lengthMin: number; readonly lengthMax: number }): JsonSchema {
  return { minLength: lengthMin, maxLength: lengthMax };
}

/**
 * Returns a field's rule as a schema. Each part of a text rule is a separate schema, because a schema can have only one
 * `pattern`.
 */
function ruleSchema(rule: FieldRule): JsonSchema {
  if (rule.kind === 'amount') return amount;
  if (rule.kind === 'choice') return { type: 'string', enum: rule.values };
  const { required, lengthMax, characters, format } = rule;
  const allOf: JsonSchema[] = [
    { description: 'no control characters', not: { type: 'string', pattern: forbiddenControls(rule).source } },
    ...(required ? [{ description: 'at least one visible character', pattern: nonBlank.source }] : []),
    ...[characters, format].flatMap((part) =>
      part === undefined ? [] : [{ description: part.message, pattern: part.pattern.source }],
    ),
  ];
  if (!required) return { type: ['string', 'null'], maxLength: lengthMax, allOf };
  return { type: 'string', ...lengthOf(rule), allOf };
}
