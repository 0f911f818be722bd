import type { IncomingHttpHeaders } from 'node:http';
import type { Failure } from '@gateway/domain/failure';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Call } from '../call.ts';
import type { Peer } from '../connection-limit.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { problemOf } from './problem.ts';

declare module 'fastify' {
  interface FastifyRequest {
    call: Call;
  }
  interface FastifyContextConfig {
    /** `false` for requests that orchestrators send every few seconds. */
    isLogged?: boolean;
    /** The name of the operation in logs, metrics and traces. */
    operation?: string;
  }
}

/** Opens the call of a request: the id is on the response from now on, and the log line is written when the response ends. */
export function openCall(deps: GatewayDeps, request: FastifyRequest, reply: FastifyReply, peer: Peer): void {
  const call = new Call(deps, 'json', request.headers, peer);
  request.call = call;
  call.operation = request.routeOptions.config?.operation ?? call.operation;
  reply.header('x-request-id', call.requestId);
  if (request.routeOptions.config?.isLogged === false) return;
  const { raw } = reply;
  raw.once('close', () => call.end({ isAnswered: raw.writableFinished, status: raw.statusCode }));
}

/** Records a failure of the call, and sends its problem document. */
export function sendFailure(reply: FastifyReply, failure: Failure, { baseUrl }: GatewayDeps): FastifyReply {
  const { call } = reply.request;
  const { status, headers, body } = problemOf(call.fail(failure), call.requestId, baseUrl());
  return reply.code(status).headers(headers).send(body);
}

/** A part of the path, percent-decoded: what stands for a name of the route, or for its `*`. */
export function parameterOf({ params }: FastifyRequest, name: string): string {
  return String(Reflect.get(Object(params), name) ?? '');
}

/** Whether a body is announced as uncompressed JSON in UTF-8. Other parameters of the media type are ignored. */
export function isJsonInUtf8(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type'] ?? '';
  const charset = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(type)?.[1] ?? 'utf-8';
  const encoding = headers['content-encoding'] ?? 'identity';
  return /^application\/json\s*(;|$)/i.test(type) && /^utf-?8$/i.test(charset) && /^identity$/i.test(encoding);
}
