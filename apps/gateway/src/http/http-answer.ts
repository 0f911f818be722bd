import { STATUS_CODES } from 'node:http';
import type { Failure } from '@gateway/domain/failure';
import type { BaseUrl } from '@gateway/domain/payment-link';
import type { KeptOrder } from '../create-order.ts';
import { orderAnswer } from '../order-answer.ts';
import { problemMediaType, problemOf } from './problem.ts';

/** An answer of JSON. Header names are in lower case. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The answer to an order that is kept. */
export function keptAnswer({ order, replayed }: KeptOrder, requestId: string, baseUrl: BaseUrl): HttpAnswer {
  return {
    status: replayed ? 200 : 201,
    headers: {
      ...(replayed ? { 'idempotent-replayed': 'true' } : {}),
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': requestId,
    },
    body: JSON.stringify(orderAnswer(order, baseUrl)),
  };
}

/** The answer to a request that failed: a problem document. */
export function refusal(failure: Failure, requestId: string, baseUrl: BaseUrl): HttpAnswer {
  const { status, headers, body } = problemOf(failure, requestId, baseUrl);
  return {
    status,
    headers: { ...headers, 'content-type': `${problemMediaType}; charset=utf-8`, 'x-request-id': requestId },
    body: JSON.stringify(body),
  };
}

/**
 * The answer as it goes over HTTP/1.1, in the form that Node.js gives to its own. `keepAliveMs` is how long the connection is kept
 * for the next request; 0 for its last answer.
 */
export function answerText({ status, headers, body }: HttpAnswer, keepAliveMs: number): string {
  let text = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
  for (const name in headers) text += `${name}: ${headers[name]}\r\n`;
  text += `content-length: ${Buffer.byteLength(body)}\r\nDate: ${dateText(Date.now())}\r\n`;
  text +=
    keepAliveMs === 0
      ? 'Connection: close\r\n'
      : `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1_000)}\r\n`;
  return `${text}\r\n${body}`;
}

let dateSecond = 0;
let date = '';

/** Written once a second, not once an answer. */
function dateText(nowMs: number): string {
  const second = Math.floor(nowMs / 1_000);
  if (second !== dateSecond) {
    dateSecond = second;
    date = new Date(nowMs).toUTCString();
  }
  return date;
}
