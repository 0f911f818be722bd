import type { FailureCode } from '@gateway/domain/failure';
import { fieldRules } from '@gateway/domain/field-rules';
import { orderTokenForm } from '@gateway/domain/order-token';
import { exampleAnswer, exampleOrder } from './example-order.ts';
import {
  type JsonSchema,
  orderAnswerSchema,
  orderSchema,
  paymentSchema,
  problemSchema,
  type ResponseObject,
  refusalResponses,
} from './schemas.ts';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'header';
  readonly required: boolean;
  readonly description: string;
  readonly schema: JsonSchema;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, { readonly schema: JsonSchema; readonly example: unknown }>>;
  };
  readonly responses: Readonly<Record<string, ResponseObject>>;
}

export type OpenApi = ReturnType<typeof openApi>;

/** Refusals that any call with credentials can meet. */
const anywhere: readonly FailureCode[] = [
  ...(['unauthenticated', 'rate_limited', 'internal', 'overloaded', 'unavailable', 'deadline_exceeded'] as const),
];

const credentials = [{ clientId: [], clientSecret: [] }];

const requestId: Parameter = {
  name: 'x-request-id',
  in: 'header',
  required: false,
  description: 'Your own id of the request, echoed in the answer; otherwise one is made',
  schema: { type: 'string' },
};

/** The interface as OpenAPI 3.1, made from the lists and rules that the gateway works by. */
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
      schemas: { Order: orderSchema, OrderAnswer: orderAnswerSchema, Payment: paymentSchema, Problem: problemSchema },
    },
  };
}

function createOrder(baseUrl: string): Operation {
  const refusals = [
    ...(['malformed_json', 'invalid_order', 'checksum_mismatch', 'order_id_conflict', 'body_too_large'] as const),
    'unsupported_media_type' as const,
  ];
  return {
    operationId: 'createOrder',
    tags: ['Orders'],
    summary: 'Create an order',
    description:
      'Keeps the order and answers with its payment link. The same order sent again answers 200 with the first answer: after a lost answer, send the order again.',
    security: credentials,
    parameters: [requestId],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Order' }, example: exampleOrder } },
    },
    responses: {
      '201': { description: 'The order is kept.', content: orderContent(baseUrl) },
      '200': {
        description: 'The same order was kept before: the first answer.',
        headers: {
          'Idempotent-Replayed': { description: 'Always `true`', schema: { type: 'string', enum: ['true'] } },
        },
        content: orderContent(baseUrl),
      },
      ...refusalResponses([...refusals, ...anywhere]),
    },
  };
}

function getOrder(baseUrl: string): Operation {
  const { lengthMin, lengthMax } = fieldRules.order_id;
  return {
    operationId: 'getOrder',
    tags: ['Orders'],
    summary: 'Look an order up',
    description:
      'Answers what the creation of the order answered, with the status as it is now. Only your own orders are found.',
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
      ...refusalResponses(['not_found', ...anywhere]),
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
      'A page in the language of Accept-Language, or its facts with `Accept: application/json`. Nothing of the customer is told at either.',
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
        description: 'The order behind the link.',
        content: { ...page, 'application/json': { schema: { $ref: '#/components/schemas/Payment' } } },
      },
      ...refusalResponses(['not_found', 'internal', 'overloaded', 'unavailable', 'deadline_exceeded'], page),
    },
  };
}

function orderContent(baseUrl: string): ResponseObject['content'] {
  return {
    'application/json': { schema: { $ref: '#/components/schemas/OrderAnswer' }, example: exampleAnswer(baseUrl) },
  };
}
