import type { IncomingHttpHeaders } from 'node:http';
import type { Failure } from '@order-gateway/domain/failure';
import type { BaseUrl } from '@order-gateway/domain/links';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { BodyReading, ReadBody } from '../calls/body/call-body.ts';
import type { Call } from '../calls/call.ts';
import type { Peer } from '../calls/peers/connection-limit.ts';
import type { Calls } from '../calls/receive.ts';
import { problemOf } from './problem.ts';

declare module 'fastify' {
  interface FastifyRequest {
    call: Call;
  }
  interface FastifyContextConfig {
    /** `false` for health checks, which orchestrators send every few seconds. */
    isLogged?: boolean;
    /** The name of the operation in logs, metrics and traces. */
    operation?: string;
    /** The methods that a route for all methods accepts. */
    allow?: string;
  }
}

/** The dependencies of every route of the HTTP port. */
export interface HttpDeps {
  readonly calls: Calls;
  readonly baseUrl: () => BaseUrl;
  /** A connection whose client reads nothing of a response for this long is closed. */
  readonly responseTakenTimeoutMs: number;
}

/**
 * Starts the call of a request, and adds the call's id to the headers of the response. Ends the call when the response
 * closes, unless the route is not logged.
 */
export function startCall({ calls }: HttpDeps, request: FastifyRequest, reply: FastifyReply, peer: Peer): void {
  const call = calls.start('json', request.headers, peer);
  request.call = call;
  call.operation = request.routeOptions.config?.operation ?? call.operation;
  call.httpMethod = request.method;
  call.route = request.routeOptions.url;
  reply.header('x-request-id', call.requestId);
  if (request.routeOptions.config?.isLogged === false) return;
  const { raw } = reply;
  raw.on('close', () => call.end({ isAnswered: raw.writableFinished, status: raw.statusCode }));
}

/** Records a failure of the call, and sends its problem document. */
export function sendFailure(
  reply: FastifyReply,
  failure: Failure,
  { baseUrl }: Pick<HttpDeps, 'baseUrl'>,
): FastifyReply {
  const { call } = reply.request;
  const { status, headers, body } = problemOf(call.fail(failure), call.requestId, baseUrl());
  return reply.code(status).headers(headers).send(body);
}

/**
 * Starts to read the body of a request. If the client waits for `100 Continue`, sends that first. Without a time limit
 * in the options, the server's own limit applies.
 */
export function startReading(
  { calls }: HttpDeps,
  { raw: request, headers }: FastifyRequest,
  { raw: response }: FastifyReply,
  options: Parameters<ReadBody>[1],
): BodyReading {
  if (/^100-continue$/i.test(headers.expect ?? '')) {
    response.writeContinue();
    response.shouldKeepAlive = !/\bclose\b/i.test(headers.connection ?? '');
  }
  return calls.readBody(request, options);
}

/** Whether a media type is JSON in UTF-8. Parameters other than the charset are ignored. */
export function isJsonInUtf8(mediaType: string): boolean {
  const charset = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(mediaType)?.[1] ?? 'utf-8';
  // A comma means that several headers were joined.
  if (mediaType.replace(/"[^"]*"/g, '').includes(',')) return false;
  return /^application\/json\s*(;|$)/i.test(mediaType) && /^utf-?8$/i.test(charset);
}

/** Whether a body is not compressed. */
export function isUncompressed(headers: IncomingHttpHeaders): boolean {
  return /^identity$/i.test(headers['content-encoding'] ?? 'identity');
}

/** Whether a body is an HTML form without files. */
export function isForm(headers: IncomingHttpHeaders): boolean {
  return /^application\/x-www-form-urlencoded\s*(;|$)/i.test(headers['content-type'] ?? '');
}

/**
 * Whether a browser sent the form from a page of another site. Sec-Fetch-Site decides. Browsers omit it over http,
 * except to localhost; without it, Origin decides. Other clients send neither header.
 */
export function isFromAnotherSite(headers: IncomingHttpHeaders, baseUrl: BaseUrl): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site !== 'same-origin';
  return headers.origin !== undefined && headers.origin !== new URL(baseUrl).origin;
}

/** Whether a page of another site embeds or fetches this page. Links from other sites are allowed. */
export function isEmbeddedElsewhere(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  return (site === 'cross-site' || site === 'same-site') && headers['sec-fetch-dest'] !== 'document';
}
