import { callerOf, jsonRouteOf } from '@gateway/contract/operations';
import { success } from '@gateway/domain/result';
import type { FastifyInstance } from 'fastify';
import type { GatewayDeps } from '../gateway-deps.ts';
import { bodyBytesMax } from '../intake/call-body.ts';
import { readJsonBody } from '../intake/json-body.ts';
import type { Receive } from '../intake/receive.ts';
import type { Members, Operation, Success } from '../orders/operation.ts';
import { isJsonInUtf8, isPlain, sendFailure, startReading } from './requests.ts';

const bodyForm = { hasEnvelope: false } as const;

/** The routes of the JSON API: of each operation whose contract has a `google.api.http` rule. */
export function operationRoutes(
  app: FastifyInstance,
  deps: GatewayDeps,
  receive: Receive,
  operations: readonly Operation[],
): void {
  for (const operation of operations) {
    const { method } = operation;
    const route = jsonRouteOf(method);
    if (route === undefined) continue;
    const { verb, path, hasBody, responseField } = route;
    const accountKind = callerOf(method);
    const hasPathParameters = path.includes('{');
    app.route({
      method: verb,
      url: path.replace(/\{(\w+)\}/g, ':$1'),
      config: { operation: method.name },
      async handler(request, reply) {
        const { call, headers } = request;
        // An error must not be cached either: the order may exist at the next look-up.
        reply.header('cache-control', 'no-store');
        const received = await receive(call, {
          headers,
          bodyBytesMax: bodyBytesMax(bodyForm),
          isMediaTypeSupported: !hasBody || (isJsonInUtf8(headers['content-type'] ?? '') && isPlain(headers)),
          accountKind,
          startReading: hasBody ? () => startReading(deps, request, reply, bodyForm) : undefined,
        });
        if (!received.ok) return sendFailure(reply, received.failure, deps);
        const members = hasBody ? readJsonBody(received.value) : success(Object(request.query) as Members);
        if (!members.ok) return sendFailure(reply, members.failure, deps);
        const sent = hasPathParameters ? { ...members.value, ...Object(request.params) } : members.value;
        const performed = await call.perform(operation, sent, ({ body, outcome }) => {
          if (outcome === 'replayed') reply.header('idempotent-replayed', 'true');
          const value = responseField === undefined ? body : Reflect.get(body, responseField);
          return { status: statuses[outcome], text: JSON.stringify(value) };
        });
        if (!performed.ok) return sendFailure(reply, performed.failure, deps);
        const { status, text } = performed.value;
        return reply.code(status).header('content-type', 'application/json; charset=utf-8').send(text);
      },
    });
  }
}

const statuses: Readonly<Record<Success, number>> = { created: 201, accepted: 202, replayed: 200, ok: 200 };
