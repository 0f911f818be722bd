import { type FailureCode, failureAdvice, failures } from '@gateway/domain/failure';
import { fieldRules } from '@gateway/domain/field-rules';
import { orderStatuses } from '@gateway/domain/order';
import { type EventType, eventTypes } from '@gateway/domain/order-states';
import { orderTokenForm } from '@gateway/domain/order-token';
import { pageLimit } from '../orders/page.ts';
import { exampleCursor, exampleEvent, exampleOrder, exampleResponse } from './example-order.ts';
import { jsonFailures, type OperationId } from './operation-failures.ts';
import { type JsonSchema, schemas, timeSchema } from './schemas.ts';

type Parameter = ReturnType<typeof parameter>;

type Content = Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>>;

interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: JsonSchema }>>;
  readonly content?: Content;
}

export type Operation = ReturnType<typeof operation>;

export type OpenApi = ReturnType<typeof openApi>;

type Tag = 'Orders' | 'Events' | 'Payment page';

/** What an operation has of its own. Text between backticks is code. */
interface OwnParts {
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, Response>>;
}

/** An operation of the OpenAPI document. All have the errors of {@link jsonFailures}; those for merchants need credentials. */
function operation(operationId: OperationId, tag: Tag, { parameters = [], responses, ...texts }: OwnParts) {
  const isForMerchants = tag !== 'Payment page';
  return {
    operationId,
    tags: [tag],
    ...texts,
    security: isForMerchants ? [{ clientId: [], clientSecret: [] }] : [],
    parameters: isForMerchants ? [...parameters, requestId] : [orderToken],
    responses: { ...responses, ...errorResponses(operationId, isForMerchants ? {} : page) },
  };
}

/** A parameter that may be absent, unless it is a part of the path. */
function parameter(
  location: 'path' | 'query' | 'header',
  name: string,
  description: string,
  schema: JsonSchema = text,
) {
  return { name, in: location, required: location === 'path', description, schema };
}

const text: JsonSchema = { type: 'string' };
const requestId = parameter(
  'header',
  'x-request-id',
  'Your own id of the request, 1 to 128 of A-Z a-z 0-9 . _ -; the response repeats it or has a new one',
);
const orderId = parameter('path', 'order_id', 'Your order_id, percent-encoded', {
  type: 'string',
  minLength: fieldRules.order_id.lengthMin,
  maxLength: fieldRules.order_id.lengthMax,
});
const orderToken = parameter('path', 'order_token', 'The token of the payment link', {
  type: 'string',
  pattern: orderTokenForm.source,
});
const limit = parameter('query', 'limit', 'The most items of the page', {
  type: 'integer',
  minimum: 1,
  maximum: pageLimit.max,
  default: pageLimit.byDefault,
});

/** The JSON API as OpenAPI 3.1, made from the rules that the gateway works by. */
export function openApi(baseUrl: string) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Order gateway',
      version: '1.0.0',
      description:
        'Create a payment order from your backend, send the customer to its payment link, and learn when it is paid.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: baseUrl }],
    tags: [
      { name: 'Orders', description: 'For merchants’ backends' },
      { name: 'Events', description: 'What happened to your orders' },
      { name: 'Payment page', description: 'For customers' },
    ],
    paths: pathsOf(baseUrl),
    webhooks: Object.fromEntries(eventTypes.map((type) => [type, { post: webhook(type, baseUrl) }])),
    components: {
      securitySchemes: {
        clientId: { type: 'apiKey', in: 'header', name: 'x-client-id', description: 'Your <APP_ID>' },
        clientSecret: { type: 'apiKey', in: 'header', name: 'x-client-secret', description: 'Your <SECRET_KEY>' },
      },
      schemas,
    },
  };
}

function pathsOf(baseUrl: string) {
  return {
    '/order': {
      post: operation('createOrder', 'Orders', {
        summary: 'Create an order',
        description:
          'Stores the order and returns its payment link. If there is no response, send the order again: the same order returns 200 with the first response.',
        requestBody: { required: true, content: jsonContent('Order', exampleOrder) },
        responses: {
          '201': json('The order was created.', 'OrderResponse', exampleResponse(baseUrl)),
          '200': {
            description: 'The same order was created before. This is the first response, with the status of now.',
            headers: replayed('Always `true`'),
            content: jsonContent('OrderResponse', exampleResponse(baseUrl)),
          },
        },
      }),
    },
    '/order/{order_id}': {
      get: operation('getOrder', 'Orders', {
        summary: 'Look up an order',
        description: 'Returns the order record with the status of now. Finds only your own orders.',
        parameters: [orderId],
        responses: {
          '200': json('The order.', 'OrderRecord', exampleEvent(baseUrl, 'order.paid').data),
        },
      }),
    },
    '/order/{order_id}/cancel': {
      post: operation('cancelOrder', 'Orders', {
        summary: 'Cancel an order',
        description:
          'Cancels an order that is `UN_PAID`, for good: nobody can pay it any more. Send no body. If there is no response, send the request again.',
        parameters: [orderId],
        responses: {
          '200': {
            description: 'The order is cancelled, now or before.',
            headers: replayed('`true` if the order was cancelled before, otherwise absent'),
            content: jsonContent('OrderRecord', exampleEvent(baseUrl, 'order.cancelled').data),
          },
        },
      }),
    },
    '/orders': {
      get: operation('listOrders', 'Orders', {
        summary: 'List orders',
        description:
          'Returns your orders, newest first. Orders that are created meanwhile change no page. All parameters are optional.',
        parameters: [
          parameter('query', 'status', 'Only orders with this status now', { type: 'string', enum: orderStatuses }),
          timeParameter('created_from', 'Only orders created at this time or later'),
          timeParameter('created_to', 'Only orders created before this time'),
          limit,
          parameter('query', 'cursor', 'The next_cursor of the page before, with the same filters'),
        ],
        responses: {
          '200': json('A page of orders.', 'OrderPage', {
            orders: [exampleEvent(baseUrl, 'order.paid').data],
            next_cursor: exampleCursor,
          }),
        },
      }),
    },
    '/events': {
      get: operation('listEvents', 'Events', {
        summary: 'List events',
        description:
          'Returns what happened to your orders, oldest first: events of the last 30 days. A client that polls with the latest `next_cursor` misses none.',
        parameters: [
          limit,
          parameter(
            'query',
            'cursor',
            'The next_cursor of the page before; without it the list starts at the oldest event',
          ),
        ],
        responses: {
          '200': json('A page of events. It may be empty: poll again with its `next_cursor`.', 'EventPage', {
            events: [exampleEvent(baseUrl, 'order.paid')],
            next_cursor: exampleCursor,
          }),
        },
      }),
    },
    '/payment/{order_token}': {
      get: operation('getPaymentPage', 'Payment page', {
        summary: 'Show the payment page',
        description:
          'Returns a page in the language of `Accept-Language`, or its facts with `Accept: application/json`. Neither holds the customer’s data.',
        responses: { '200': { description: 'The order of the link.', content: pageOrJson } },
      }),
    },
    '/payment/{order_token}/simulate': {
      post: operation('simulatePayment', 'Payment page', {
        summary: 'Pay or decline an order of a test merchant',
        description:
          'What the two buttons on the page of a test order send, for tests without a browser. No money moves. `not_found` for the orders of live merchants, and `permission_denied` for a form on another site.',
        requestBody: { required: true, content: { 'application/x-www-form-urlencoded': { schema: simulation } } },
        responses: {
          '303': {
            description: 'The order is `PAID`, now or before. Its `payment_id` begins with `test_`.',
            headers: {
              Location: { description: 'The return URL, with its parameters', schema: { ...text, format: 'uri' } },
            },
          },
          '200': {
            description: 'Declined: the payment page again, with a notice. The order is still `UN_PAID`.',
            content: pageOrJson,
          },
          '409': {
            description: 'Nothing to pay or to decline: the payment page of the order as it is now.',
            content: pageOrJson,
          },
        },
      }),
    },
  };
}

function timeParameter(name: string, meaning: string): Parameter {
  return parameter('query', name, `${meaning}: ISO 8601 with an offset`, timeSchema);
}

function replayed(description: string): NonNullable<Response['headers']> {
  return { 'Idempotent-Replayed': { description, schema: { type: 'string', enum: ['true'] } } };
}

/** The form of the two buttons on the page of a test order. */
const simulation: JsonSchema = {
  type: 'object',
  required: ['outcome'],
  properties: { outcome: { type: 'string', description: 'What the customer does', enum: ['pay', 'decline'] } },
};

const page: Content = { 'text/html': { schema: text } };
const pageOrJson: Content = { ...page, 'application/json': { schema: refTo('Payment') } };

export const eventTexts: Readonly<Record<EventType, { readonly operationId: string; readonly meaning: string }>> = {
  'order.paid': { operationId: 'onOrderPaid', meaning: 'The customer paid: deliver.' },
  'order.expired': {
    operationId: 'onOrderExpired',
    meaning: 'The order was not paid before its `order_expires_at`. A payment that was made in time can still follow.',
  },
  'order.cancelled': { operationId: 'onOrderCancelled', meaning: 'You cancelled the order.' },
};

/** What the gateway sends to a merchant's endpoint (Standard Webhooks). */
function webhook(type: EventType, baseUrl: string) {
  const { operationId, meaning } = eventTexts[type];
  const header = (name: string, description: string) => ({
    ...parameter('header', name, description),
    required: true,
  });
  return {
    operationId,
    tags: ['Events'],
    summary: `An order has the event ${type}`,
    description: `${meaning} Sent at least once and in any order: ignore a \`webhook-id\` that you have seen, and verify the signature first.`,
    security: [],
    parameters: [
      header('webhook-id', 'The id of the event, the same at every attempt'),
      header('webhook-timestamp', 'The time of the attempt in Unix seconds'),
      header('webhook-signature', 'One or two signatures, each `v1,` and base64, with a blank between them'),
    ],
    requestBody: { required: true, content: jsonContent('Event', exampleEvent(baseUrl, type)) },
    responses: {
      '2XX': { description: 'Received, if it comes within 15 seconds. Any other response is tried again.' },
      '410': { description: 'Disables the endpoint.' },
    },
  };
}

function refTo(schema: string): JsonSchema {
  return { $ref: `#/components/schemas/${schema}` };
}

function json(description: string, schema: string, example: unknown): Response {
  return { description, content: jsonContent(schema, example) };
}

function jsonContent(schema: string, example: unknown): Content {
  return { 'application/json': { schema: refTo(schema), example } };
}

const challenge: NonNullable<Response['headers']> = {
  'WWW-Authenticate': {
    description: 'The credentials in x-client-id and x-client-secret',
    schema: { type: 'string', enum: ['ClientSecret'] },
  },
};

const retryAfter: NonNullable<Response['headers']> = {
  'Retry-After': {
    description: 'With `rate_limited` and `overloaded`: the seconds to wait before the next attempt',
    schema: { type: 'integer', minimum: 1 },
  },
};

/** The error responses of an operation by HTTP status. `page` is what a browser gets instead of the problem document. */
function errorResponses(operationId: OperationId, page: Content = {}): Record<string, Response> {
  const codes: readonly FailureCode[] = jsonFailures[operationId];
  const byStatus = Map.groupBy(codes, (code) => String(failures[code].httpStatus));
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      status,
      {
        description: ofStatus
          .map((code) => `\`${code}\`: ${failureAdvice(code, operationId === 'createOrder')}`)
          .join('\n\n'),
        ...(status === '401' ? { headers: challenge } : {}),
        ...(ofStatus.some((code) => code === 'rate_limited' || code === 'overloaded') ? { headers: retryAfter } : {}),
        content: { ...page, 'application/problem+json': { schema: refTo('Problem') } },
      },
    ]),
  );
}
