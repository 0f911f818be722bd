import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Caller, createOrder, type KeptOrder } from '../create-order.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { callTimeoutMs, messageBytesMax } from '../limits.ts';
import { orderAnswer } from '../order-answer.ts';
import { credentialsOf } from './credentials.ts';
import { refuse } from './refuse.ts';
import { parseOrderJson } from './strict-json.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who called, once the credentials were checked. */
    caller: Caller | undefined;
  }
}

/** `POST /order`. The checks run in the documented order: size and media type, credentials, JSON, fields, checksum, store. */
export function orderRoutes(app: FastifyInstance, deps: GatewayDeps): void {
  app.decorateRequest('caller', undefined);
  // The body is taken as bytes, whatever the media type says: which types are allowed is decided before it is read.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.route({
    method: 'POST',
    url: '/order',
    onRequest: (request, reply) => admit(deps, request, reply),
    handler: (request, reply) => answer(deps, request, reply),
  });
}

async function admit(
  deps: GatewayDeps,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply | undefined> {
  const { headers } = request;
  if (Number(headers['content-length']) > messageBytesMax)
    return refuse(deps, request, reply, { kind: 'body_too_large' });
  if (!isPlainJson(headers)) return refuse(deps, request, reply, { kind: 'unsupported_media_type' });
  const credentials = credentialsOf(request);
  const merchant = await deps.authenticate(credentials, callTimeoutMs);
  if (!merchant.ok) return refuse(deps, request, reply, merchant.failure);
  request.merchantId = merchant.value.id;
  request.caller = { merchant: merchant.value, clientSecret: credentials.clientSecret ?? '' };
  return undefined;
}

/** `application/json`, in UTF-8 where a charset is named, and not compressed. */
function isPlainJson(headers: FastifyRequest['headers']): boolean {
  const encoding = headers['content-encoding'] ?? 'identity';
  return (
    encoding.toLowerCase() === 'identity' &&
    /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?;?$/i.test(headers['content-type'] ?? '')
  );
}

async function answer(deps: GatewayDeps, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { caller, body } = request;
  if (caller === undefined) throw new Error('a request came past its admission');
  const timeLeftMs = callTimeoutMs - reply.elapsedTime;
  if (timeLeftMs <= 0) return refuse(deps, request, reply, { kind: 'deadline_exceeded' });
  const input = parseOrderJson(body instanceof Uint8Array ? body : new Uint8Array());
  if (!input.ok) return refuse(deps, request, reply, { kind: 'malformed_json', reason: input.failure });
  const created = await createOrder(deps, caller, input.value, timeLeftMs);
  if (!created.ok) return refuse(deps, request, reply, created.failure);
  return tell(deps, request, reply, created.value);
}

function tell(
  deps: GatewayDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  { order, replayed }: KeptOrder,
): FastifyReply {
  request.outcome = replayed ? 'replayed' : 'created';
  if (replayed) reply.header('idempotent-replayed', 'true');
  return reply
    .code(replayed ? 200 : 201)
    .header('content-type', 'application/json')
    .header('x-request-id', request.id)
    .send(JSON.stringify(orderAnswer(order, deps.baseUrl())));
}
