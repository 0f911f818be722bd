import { type FailureCode, failureAdvice, failures } from '@gateway/domain/failure';
import { fieldRules } from '@gateway/domain/field-rules';
import { orderTokenForm } from '@gateway/domain/order-token';
import { exampleOrder, exampleResponse } from './example-order.ts';
import { type JsonSchema, orderResponseSchema, orderSchema, paymentSchema, problemSchema } from './schemas.ts';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'header';
  readonly required: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
}

type Content = Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>>;

interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: JsonSchema }>>;
  readonly content: Content;
}

/** An operation of the OpenAPI document. Text between backticks in a description is code. */
export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, Response>>;
}

export type OpenApi = ReturnType<typeof openApi>;

/** Errors of every operation, and those of every operation with credentials. */
const commonErrors = ['request_timeout', 'internal', 'overloaded', 'unavailable', 'deadline_exceeded'] as const;
const merchantErrors = ['unauthenticated', 'rate_limited', ...commonErrors] as const;

const credentials = [{ clientId: [], clientSecret: [] }];

const requestId: Parameter = {
  name: 'x-request-id',
  in: 'header',
  required: false,
  description: 'Your own id of the request, 1 to 128 of A-Z a-z 0-9 . _ -; the response repeats it or has a new one',
  schema: { type: 'string' },
};

/** The JSON API as OpenAPI 3.1, made from the rules that the gateway works by. */
export function openApi(baseUrl: string) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Order gateway',
      version: '1.0.0',
      description:
        'Create a payment order from your backend, send the customer to its payment link, and look it up again.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: baseUrl }],
    tags: [
      { name: 'Orders', description: 'For merchants’ backends' },
      { name: 'Payment page', description: 'For customers' },
    ],
    paths: {
      '/order': { post: createOrder(baseUrl) },
      '/order/{order_id}': { get: getOrder(baseUrl) },
      '/payment/{order_token}': { get: getPaymentPage() },
    },
    components: {
      securitySchemes: {
        clientId: { type: 'apiKey', in: 'header', name: 'x-client-id', description: 'Your <APP_ID>' },
        clientSecret: { type: 'apiKey', in: 'header', name: 'x-client-secret', description: 'Your <SECRET_KEY>' },
      },
      schemas: {
        Order: orderSchema,
        OrderResponse: orderResponseSchema,
        Payment: paymentSchema,
        Problem: problemSchema,
      },
    },
  };
}

function createOrder(baseUrl: string): Operation {
  const errors = [
    ...(['malformed_json', 'invalid_order', 'checksum_mismatch', 'order_id_conflict', 'body_too_large'] as const),
    ...(['unsupported_media_type', 'request_timeout', ...merchantErrors] as const),
  ];
  return {
    operationId: 'createOrder',
    tags: ['Orders'],
    summary: 'Create an order',
    description:
      'Stores the order and returns its payment link. If there is no response, send the order again: the same order returns 200 with the first response.',
    security: credentials,
    parameters: [requestId],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Order' }, example: exampleOrder } },
    },
    responses: {
      '201': { description: 'The order was created.', content: orderContent(baseUrl) },
      '200': {
        description: 'The same order was created before. This is the first response, with the status of now.',
        headers: {
          'Idempotent-Replayed': { description: 'Always `true`', schema: { type: 'string', enum: ['true'] } },
        },
        content: orderContent(baseUrl),
      },
      ...errorResponses(errors, true),
    },
  };
}

function getOrder(baseUrl: string): Operation {
  const { lengthMin, lengthMax } = fieldRules.order_id;
  return {
    operationId: 'getOrder',
    tags: ['Orders'],
    summary: 'Look up an order',
    description:
      'Returns the response to the creation of the order, with the status of now. Finds only your own orders.',
    security: credentials,
    parameters: [
      {
        name: 'order_id',
        in: 'path',
        required: true,
        description: 'Your order_id, percent-encoded',
        schema: { type: 'string', minLength: lengthMin, maxLength: lengthMax },
      },
      requestId,
    ],
    responses: {
      '200': { description: 'The order.', content: orderContent(baseUrl) },
      ...errorResponses(['not_found', ...merchantErrors], false),
    },
  };
}

function getPaymentPage(): Operation {
  const page = { 'text/html': { schema: { type: 'string' } } };
  return {
    operationId: 'getPaymentPage',
    tags: ['Payment page'],
    summary: 'Show the payment page',
    description:
      'Returns a page in the language of `Accept-Language`, or its facts with `Accept: application/json`. Neither holds the customer’s data.',
    security: [],
    parameters: [
      {
        name: 'order_token',
        in: 'path',
        required: true,
        description: 'The token of the payment link',
        schema: { type: 'string', pattern: orderTokenForm.source },
      },
    ],
    responses: {
      '200': {
        description: 'The order of the link.',
        content: { ...page, 'application/json': { schema: { $ref: '#/components/schemas/Payment' } } },
      },
      ...errorResponses(['not_found', ...commonErrors], false, page),
    },
  };
}

function orderContent(baseUrl: string): Content {
  return {
    'application/json': { schema: { $ref: '#/components/schemas/OrderResponse' }, example: exampleResponse(baseUrl) },
  };
}

const retryAfter: NonNullable<Response['headers']> = {
  'Retry-After': {
    description: 'With `rate_limited` and `overloaded`: the seconds to wait before the next attempt',
    schema: { type: 'integer', minimum: 1 },
  },
};

/** The error responses of an operation by HTTP status. `page` is what a browser gets instead of the problem document. */
function errorResponses(codes: readonly FailureCode[], creates: boolean, page: Content = {}): Record<string, Response> {
  const byStatus = Map.groupBy(codes, (code) => String(failures[code].httpStatus));
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      status,
      {
        description: ofStatus.map((code) => `\`${code}\`: ${failureAdvice(code, creates)}`).join('\n\n'),
        ...(ofStatus.some((code) => code === 'rate_limited' || code === 'overloaded') ? { headers: retryAfter } : {}),
        content: { ...page, 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    ]),
  );
}
