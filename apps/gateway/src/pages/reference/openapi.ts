import type { DescField, DescMethodUnary } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { comments } from '@order-gateway/contract/comments';
import { errorCatalogue, failureAdvice } from '@order-gateway/contract/errors';
import { errorsOf, jsonRouteOf, methods, services } from '@order-gateway/contract/operations';
import { type EventType, eventTypes } from '@order-gateway/domain/events';
import type { FailureCode } from '@order-gateway/domain/failure';
import { orderTokenForm } from '@order-gateway/domain/links';
import { pageLanguages } from '@order-gateway/pages/localization';
import { eventWatchLimits } from '../../limits.ts';
import { version } from '../../runtime/telemetry/version.ts';
import { simulatedOutcomes } from '../payment-page/simulate-payment.ts';
import { exampleCursor, exampleEndpoint, exampleEvent, exampleOrder, exampleResponse } from './example-order.ts';
import { fieldSchema, type JsonSchema, refTo, responseMessageOf, schemas } from './schemas.ts';
import { sdkSamples } from './sdk-samples.ts';

type Parameter = ReturnType<typeof parameter>;

type Content = Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>>;

interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: JsonSchema }>>;
  readonly content?: Content;
}

/** An operation of the document. */
export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, Response>>;
  /** An extension that Scalar and Redoc read. */
  readonly 'x-codeSamples'?: ReturnType<typeof sdkSamples>;
}

/** The errors that every operation with credentials can return. */
const commonErrors = [
  'unauthenticated',
  'permission_denied',
  'body_too_large',
  'rate_limited',
  'overloaded',
  'unavailable',
  'deadline_exceeded',
  'internal',
] as const satisfies readonly FailureCode[];

/** The errors that only the JSON API returns: for every request, and for requests with a body. */
const jsonErrors = {
  always: ['malformed_request', 'method_not_allowed', 'request_timeout', 'headers_too_large'],
  withBody: ['malformed_json', 'unsupported_media_type'],
} as const;

/** The errors of the payment page, which needs no credentials. */
const pageErrors: readonly FailureCode[] = [
  'not_found',
  ...jsonErrors.always,
  ...commonErrors.filter((code) => code !== 'unauthenticated' && code !== 'permission_denied'),
];

/** Returns the errors of a method that has a JSON route. */
export function jsonErrorsOf(method: DescMethodUnary): FailureCode[] {
  const declaredErrors = errorsOf(method) as FailureCode[];
  const body = jsonRouteOf(method)?.hasBody ? jsonErrors.withBody : [];
  return [...declaredErrors, ...body, ...jsonErrors.always, ...commonErrors];
}

const text: JsonSchema = { type: 'string' };

/** Describes a parameter. Only the parameters in the path are required. */
function parameter(location: 'path' | 'query' | 'header', name: string, description: string, schema = text) {
  return { name, in: location, required: location === 'path', description, schema };
}

const requestId = parameter(
  'header',
  'x-request-id',
  'Your own id for the request: 1 to 128 characters from A-Z a-z 0-9 . _ -. The response has the same id, or a new one if yours is absent or invalid.',
);

/** The preference (RFC 7240) of every method with a body. */
const strictHandling = parameter(
  'header',
  'prefer',
  'With `handling=strict`, unknown members are rejected as `unknown_field`, null as `wrong_type` (except in `customer_address_line2` and `customer_locale`), and so is an invalid `customer_locale`. Otherwise, the gateway ignores them.',
  { ...text, enum: ['handling=strict'] },
);

/** The preferences of methods without a body. */
const preferences: Readonly<Record<string, readonly Parameter[]>> = {
  ListEvents: [
    parameter(
      'header',
      'prefer',
      `With \`wait=N\`, the gateway waits up to N seconds (at most ${eventWatchLimits.waitSecondsMax}) for the first event instead of returning an empty page.`,
      { ...text, pattern: '^wait=[0-9]+$' },
    ),
  ],
};

const orderToken = parameter('path', 'order_token', 'The token of the payment link.', {
  ...text,
  pattern: orderTokenForm.source,
});

const language = parameter(
  'query',
  'lang',
  `The language of the page: one of ${pageLanguages.join(', ')}. You can add a region, as in de-CH. Any other value is ignored.`,
);

/** Returns the OpenAPI 3.1 document of the JSON API, which is generated from the contract and the gateway's rules. */
export function openApi(baseUrl: string) {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Order gateway',
      version,
      description:
        'Create a payment order from your backend, send the customer to its payment link, and learn when it is paid.',
      contact: { name: 'The operator of this gateway', url: baseUrl },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: baseUrl }],
    tags: [
      ...services
        .filter((service) => Object.values(methods).some((method) => method.parent === service && jsonRouteOf(method)))
        .map((service) => ({ name: tagOf(service.name), description: comments[service.typeName]?.split('\n\n')[0] })),
      { name: 'Payment page', description: 'The page that a payment link opens, for customers.' },
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

function pathsOf(baseUrl: string): Readonly<Record<string, Readonly<Record<string, Operation>>>> {
  const paths: Record<string, Record<string, Operation>> = {};
  for (const method of Object.values(methods)) {
    const route = jsonRouteOf(method);
    if (route === undefined) continue;
    for (const path of [route.path, ...route.otherPaths])
      paths[path] = { ...paths[path], [route.verb.toLowerCase()]: operationOf(method, path, baseUrl) };
  }
  return { ...paths, ...pagePaths() };
}

function tagOf(serviceName: string): string {
  return serviceName.replace(/s?Service$/, 's');
}

/** Returns the operation for a method with a JSON route. The first paragraph of the method's comment is the summary. */
function operationOf(method: DescMethodUnary, path: string, baseUrl: string): Operation {
  const { hasBody, otherPaths = [] } = jsonRouteOf(method) ?? { hasBody: false };
  const isByQuery = otherPaths.includes(path);
  const operationId = isByQuery ? `${method.localName}ByQuery` : method.localName;
  const [summary = '', ...description] = (comments[`${method.parent.typeName}.${method.name}`] ?? '').split('\n\n');
  const { request, response } = examplesOf(baseUrl)[method.name] ?? {};
  const isInPath = ({ name }: DescField) => path.includes(`{${name}}`);
  // If the path contains a key of a oneof, the route does not accept the other keys.
  const fields = method.input.fields.filter((field) => isInPath(field) || !field.oneof?.fields.some(isInPath));
  return {
    operationId,
    tags: [tagOf(method.parent.name)],
    summary: summary.replace(/\.$/, isByQuery ? ' by any of its ids' : ''),
    description: description.join('\n\n'),
    security: [{ clientId: [], clientSecret: [] }],
    parameters: [
      ...(hasBody ? fields.filter(isInPath) : fields).map((field) => {
        const { description = '', ...schema } = fieldSchema(field);
        // OpenAPI has no style for `metadata.KEY=VALUE`, so this parameter stands for all keys.
        const name = field.fieldKind === 'map' ? `${field.name}.KEY` : field.jsonName;
        const value = field.fieldKind === 'map' ? text : schema;
        return parameter(isInPath(field) ? 'path' : 'query', name, description, value);
      }),
      ...(hasBody ? [strictHandling] : (preferences[method.name] ?? [])),
      requestId,
    ],
    'x-codeSamples': sdkSamples(operationId, baseUrl),
    ...(hasBody && { requestBody: { required: true, content: json(method.input.name, request) } }),
    responses: {
      ...successesOf(method, response),
      ...errorResponses(jsonErrorsOf(method), method.name === 'CreateOrder'),
    },
  };
}

/** Whether a method creates a resource. AIP-133 requires the prefix `Create`. */
function creates({ name }: DescMethodUnary): boolean {
  return name.startsWith('Create');
}

function successesOf(method: DescMethodUnary, example: unknown): Record<string, Response> {
  const { verb } = jsonRouteOf(method) ?? {};
  const body = responseMessageOf(method);
  const content = json(body.name, example);
  const description = comments[body.typeName] ?? '';
  // Redeliveries are queued and happen after the response.
  if (method.name.startsWith('Redeliver')) return { 202: { description, content } };
  const isIdempotent = method.idempotency === MethodOptions_IdempotencyLevel.IDEMPOTENT;
  if (!isIdempotent && creates(method)) return { 201: { description, content } };
  // Each ping sends a new message, so it never replays an earlier call.
  if (!isIdempotent || verb !== 'POST' || method.name.startsWith('Ping')) return { 200: { description, content } };
  const replayed = {
    description: creates(method) ? 'The same request succeeded before.' : description,
    headers: headerOf('Idempotent-Replayed', '`true` if the same request succeeded before; otherwise absent.', {
      ...text,
      enum: ['true'],
    }),
    content,
  };
  return creates(method) ? { 201: { description, content }, 200: replayed } : { 200: replayed };
}

/** Returns the example requests and responses, by method. */
function examplesOf(
  baseUrl: string,
): Readonly<Record<string, { readonly request?: object; readonly response: object }>> {
  const paid = exampleEvent(baseUrl, 'order.paid');
  return {
    CreateOrder: { request: exampleOrder, response: exampleResponse(baseUrl) },
    GetOrder: { response: paid.data },
    CancelOrder: { response: exampleEvent(baseUrl, 'order.cancelled').data },
    RecordManualPayment: {
      request: { payment_id: 'receipt-204', paid_on: '2026-11-20', payment_note: 'Cash, at the counter' },
      response: { ...paid.data, payment_id: 'receipt-204', payment_method: 'manual' },
    },
    ListOrders: { response: { orders: [paid.data], next_cursor: exampleCursor } },
    ListEvents: { response: { events: [paid], next_cursor: exampleCursor } },
    CreateWebhookEndpoint: {
      request: { url: exampleEndpoint.url, event_types: exampleEndpoint.event_types },
      response: { ...exampleEndpoint, signing_secret: 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=' },
    },
    GetWebhookEndpoint: { response: exampleEndpoint },
    ListWebhookEndpoints: { response: { endpoints: [exampleEndpoint] } },
    UpdateWebhookEndpoint: { request: { status: 'enabled' }, response: exampleEndpoint },
  };
}

/** The form of a test order. The page has buttons for two of its outcomes. */
const simulation: JsonSchema = {
  type: 'object',
  required: ['outcome'],
  properties: { outcome: { type: 'string', description: 'The outcome to simulate.', enum: simulatedOutcomes } },
};

const page: Content = { 'text/html': { schema: text } };
const pageOrJson: Content = { ...page, 'application/json': { schema: refTo('Payment') } };

const forCustomers = { tags: ['Payment page'], security: [], parameters: [orderToken] };

/** The paths of the payment page, which are not methods of the contract. */
const pagePaths = (): Readonly<Record<string, Readonly<Record<string, Operation>>>> => ({
  '/payment/{order_token}': {
    get: {
      ...forCustomers,
      parameters: [orderToken, language],
      operationId: 'getPaymentPage',
      summary: 'Show the payment page',
      description:
        "Returns a page in the language of `lang` or of `Accept-Language`, or its content as JSON with `Accept: application/json`. Neither contains the customer's data.",
      responses: {
        200: { description: 'The order of the link.', content: pageOrJson },
        ...errorResponses(pageErrors, false, page),
      },
    },
  },
  '/payment/{order_token}/qr.svg': {
    get: {
      ...forCustomers,
      operationId: 'getPaymentQrCode',
      summary: 'Show the payment link as a QR code',
      description: 'You can print it on invoices. Like the link, it is only for the customer.',
      responses: {
        200: { description: 'The QR code, black on white.', content: { 'image/svg+xml': { schema: text } } },
        ...errorResponses(pageErrors, false, page),
      },
    },
  },
  '/payment/{order_token}/simulate': {
    post: {
      ...forCustomers,
      operationId: 'simulatePayment',
      summary: 'Simulate a payment of a test order',
      description:
        'Simulates the outcome of a payment without moving money. The two buttons on the page of a test order send this form. Tests without a browser can send it too. Returns `not_found` for the order of a live merchant, and `permission_denied` if another site sent the form.',
      requestBody: { required: true, content: { 'application/x-www-form-urlencoded': { schema: simulation } } },
      responses: {
        303: {
          description: 'The order is `PAID`. Its `payment_id` begins with `test_` if this form paid it.',
          headers: headerOf('Location', 'The return URL, with its parameters.', { ...text, format: 'uri' }),
        },
        200: {
          description:
            'For `decline`, the payment page with a notice that the payment was declined; the order is still `UN_PAID`. For `expire`, the page of the order, which is now `EXPIRED`.',
          content: pageOrJson,
        },
        409: {
          description:
            'The current page of the order. The order can no longer be paid, a payment is in progress, or the payment of `pay_late` was refused.',
          content: pageOrJson,
        },
        ...errorResponses(
          [...pageErrors, 'invalid_request', 'permission_denied', 'unsupported_media_type'],
          false,
          page,
        ),
      },
    },
  },
});

/** What each event means for a merchant. */
const eventMeanings: Readonly<Record<EventType, string>> = {
  'order.paid': 'The customer has paid. You can deliver the order.',
  'order.expired':
    'The order was not paid before its `order_expires_at`. A payment that the customer made in time can still be reported later.',
  'order.cancelled': 'You cancelled the order.',
  'order.payment_refused':
    "A customer's payment was refused because it could not pay the order. The checkout system must refund it.",
  'order.refunded': 'A refund succeeded: the money was returned to the customer.',
  'order.refund_failed':
    'A refund failed, or the bank returned the money of one that had succeeded. The amount can be refunded again.',
  'order.disputed': "A customer disputes a payment. Unless it is an inquiry, the customer's bank has taken the money.",
  'order.dispute_closed': 'A dispute was won or lost.',
};

/** Returns the operationId of an event's webhook, such as `onOrderPaid`. */
function webhookOperationId(type: EventType): string {
  return `on${type.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())}`;
}

/** Describes the gateway's request to a merchant's endpoint (Standard Webhooks). */
function webhook(type: EventType, baseUrl: string): Operation {
  const header = (...header: [name: string, description: string]) => ({
    ...parameter('header', ...header),
    required: true,
  });
  return {
    operationId: webhookOperationId(type),
    tags: ['Events'],
    summary: `An order has the event ${type}`,
    description: `${eventMeanings[type]} The gateway sends each event at least once, and may send events in any order. Verify the signature first, and ignore a \`webhook-id\` that you have already processed.`,
    security: [],
    parameters: [
      header('webhook-id', 'The id of the event, which is the same for every attempt.'),
      header('webhook-timestamp', 'The time of the attempt in Unix seconds.'),
      header('webhook-signature', 'One or two signatures, separated by a space. Each is `v1,` followed by base64.'),
    ],
    requestBody: { required: true, content: json('Event', exampleEvent(baseUrl, type)) },
    responses: {
      '2XX': {
        description:
          'The event is delivered if the response arrives within 15 seconds. After any other response, the gateway tries again.',
      },
      410: { description: 'The gateway disables the endpoint.' },
    },
  };
}

function json(schema: string, example: unknown): Content {
  return { 'application/json': { schema: refTo(schema), example } };
}

function headerOf(name: string, description: string, schema: JsonSchema): NonNullable<Response['headers']> {
  return { [name]: { description, schema } };
}

const challenge = headerOf('WWW-Authenticate', 'Send the credentials in x-client-id and x-client-secret.', {
  ...text,
  enum: ['ClientSecret'],
});

const allow = headerOf('Allow', 'The methods that the path supports.', text);

const retryAfter = headerOf(
  'Retry-After',
  'With `rate_limited`, `overloaded` and `payment_in_progress`, the number of seconds to wait before the next attempt.',
  { type: 'integer', minimum: 1 },
);

/** The errors whose responses say when to retry. */
const retriedLater: readonly FailureCode[] = ['rate_limited', 'overloaded', 'payment_in_progress'];

/** Returns the error responses by HTTP status. `page` is the content that browsers get instead of the problem. */
function errorResponses(codes: readonly FailureCode[], creates: boolean, page: Content = {}): Record<string, Response> {
  const byStatus = Map.groupBy(codes, (code) => String(errorCatalogue[code].httpStatus));
  return Object.fromEntries(
    [...byStatus].map(([status, codesOfStatus]) => [
      status,
      {
        description: codesOfStatus.map((code) => `\`${code}\`: ${failureAdvice(code, creates)}`).join('\n\n'),
        headers: {
          ...(status === '401' ? challenge : {}),
          ...(status === '405' ? allow : {}),
          ...(codesOfStatus.some((code) => retriedLater.includes(code)) ? retryAfter : {}),
        },
        content: { ...page, 'application/problem+json': { schema: refTo('Problem') } },
      },
    ]),
  );
}
