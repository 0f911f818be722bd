import { once } from 'node:events';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { text } from 'node:stream/consumers';
import { fromJson } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Credentials } from '@order-gateway/domain/accounts';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import type { OrderResponse } from '../../src/operations/orders.ts';

// The calls of a merchant's backend. Programs that tests start use them too, so nothing here imports vitest.

/** A gateway's URL, and the caller's credentials. */
export interface Caller {
  readonly url: string;
  readonly credentials: Credentials;
}

/** Returns the valid sample order as a Protobuf message. The keys of `overrides` are the API's field names. */
export function orderMessage(orderId: string, overrides: Readonly<Record<string, string>> = {}) {
  return fromJson(CreateOrderRequestSchema, { ...validOrderInput({ order_id: orderId }), ...overrides });
}

/** Sends a request with a JSON body and options that `fetch` does not have. Rejects if there is no response. */
export async function sendRequest(
  url: string,
  { headers, ...options }: RequestOptions & { headers?: Readonly<Record<string, string>> },
  body?: unknown,
): Promise<{ status: number; headers: IncomingHttpHeaders; body: string }> {
  const request = url.startsWith('https:') ? httpsRequest : httpRequest;
  const outgoing = request(url, { ...options, headers: { 'content-type': 'application/json', ...headers } });
  outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = await once(outgoing, 'response');
  return { status: response.statusCode, headers: response.headers, body: await text(response) };
}

/** Sends a value as JSON. Text and bytes are sent unchanged. */
export function postJson(
  { url, credentials }: Caller,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...credentialHeaders(credentials), ...headers },
    body: body instanceof Uint8Array ? Uint8Array.from(body) : typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** Sends `POST /order` as a merchant's backend does. */
export function postOrder(merchant: Caller, body: unknown = validOrderInput(), headers?: Record<string, string>) {
  return postJson(merchant, '/order', body, headers);
}

/** Reports the payment of a sample order as a checkout system does. `overrides` replace values of the request. */
export function postPayment(checkout: Caller, orderToken: string, overrides: object = {}): Promise<Response> {
  const { order_amount, order_currency } = validOrderInput();
  return postJson(checkout, '/gateway.v1.CheckoutService/RecordPayment', {
    order_token: orderToken,
    payment_id: `pay-${orderToken}`,
    paid_at: new Date().toISOString(),
    order_amount,
    order_currency,
    ...overrides,
  });
}

/** Submits the form that a test order's page sends when the customer presses Pay. */
export function pressPay(paymentLink: string): Promise<Response> {
  const body = new URLSearchParams({ outcome: 'pay' });
  return fetch(`${paymentLink}/simulate`, { method: 'POST', body, redirect: 'manual' });
}

/**
 * Creates the sample order with this id and these overrides, and returns the response's body. Sends the order again if
 * a slow machine misses the call's deadline, after which the order may already exist.
 */
export async function createOrder(
  merchant: Caller,
  orderId: string,
  overrides: Readonly<Record<string, unknown>> = {},
  mayExist = false,
): Promise<OrderResponse> {
  const response = await postOrder(merchant, validOrderInput({ order_id: orderId, ...overrides }));
  if (response.status === 503 || response.status === 504) return createOrder(merchant, orderId, overrides, true);
  if (response.status === 201 || (mayExist && response.status === 200)) return readOrder(response);
  throw new Error(`${orderId} was not created: HTTP ${response.status}`);
}

/** Makes a call as a merchant, with or without a JSON body. Returns the response with its body as a JSON value. */
export async function callJson(
  { url, credentials }: Caller,
  method: string,
  path: string,
  body?: unknown,
  extraHeaders: Readonly<Record<string, string>> = {},
): Promise<{ status: number; headers: Headers; body: ReturnType<typeof Object> }> {
  const headers = { ...credentialHeaders(credentials), accept: 'application/json', ...extraHeaders };
  const jsonBody = body !== undefined && { body: JSON.stringify(body) };
  const response = await fetch(url + path, {
    method,
    ...jsonBody,
    headers: jsonBody ? { ...headers, 'content-type': 'application/json' } : headers,
  });
  return { status: response.status, headers: response.headers, body: Object(await response.json()) };
}

/** Creates an order and cancels it, which stores an event. */
export async function cancelNewOrder(merchant: Caller, orderId: string): Promise<void> {
  await createOrder(merchant, orderId);
  const { status } = await callJson(merchant, 'POST', `/order/${orderId}/cancel`);
  if (status !== 200) throw new Error(`${orderId} was not cancelled: HTTP ${status}`);
}

/** Returns the body of a response that contains an order. */
export async function readOrder(response: Response): Promise<OrderResponse> {
  return (await response.json()) as OrderResponse;
}

export function credentialHeaders({ clientId, clientSecret }: Credentials): Record<string, string> {
  return { 'x-client-id': clientId, 'x-client-secret': clientSecret };
}
