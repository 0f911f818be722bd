import { callerOf, jsonRouteOf, messageBytesMaxOf } from '@order-gateway/contract/operations';
import { success } from '@order-gateway/domain/result';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { bodyBytesMax } from '../calls/body/call-body.ts';
import { readJsonBody } from '../calls/body/json-body.ts';
import type { Members, Operation, Success } from '../calls/operation.ts';
import { type HttpDeps, isJsonInUtf8, isUncompressed, sendFailure, startReading } from './requests.ts';

/** Adds the routes of the JSON API, as the `google.api.http` rules of the contract declare them. */
export function operationRoutes(app: FastifyInstance, deps: HttpDeps, operations: readonly Operation[]): void {
  const routes = operations.flatMap((operation) => {
    const route = jsonRouteOf(operation.method);
    return route === undefined ? [] : [route.path, ...route.otherPaths].map((path) => ({ ...route, operation, path }));
  });
  for (const { operation, verb, path, hasBody, responseField } of routes) {
    const { method } = operation;
    const accountKind = callerOf(method);
    const bodyForm = { hasEnvelope: false, messageBytesMax: messageBytesMaxOf(method) };
    const hasPathParameters = path.includes('{');
    const maps = method.input.fields.filter(({ fieldKind }) => fieldKind === 'map').map(({ jsonName }) => jsonName);
    app.route({
      method: verb,
      url: path.replace(/\{(\w+)\}/g, ':$1'),
      config: { operation: method.name },
      async handler(request, reply) {
        const { call, headers } = request;
        // Applies to errors too, because an order that does not exist yet may exist at the next lookup.
        reply.header('cache-control', 'no-store');
        await deps.calls.serve(call, operation, {
          incoming: {
            headers,
            bodyBytesMax: bodyBytesMax(bodyForm),
            isMediaTypeSupported: !hasBody || (isJsonInUtf8(headers['content-type'] ?? '') && isUncompressed(headers)),
            accountKind,
            startReading: hasBody ? () => startReading(deps, request, reply, bodyForm) : undefined,
          },
          decode(body) {
            const members = hasBody ? readJsonBody(body) : success(queryMembers(request, maps));
            if (!members.ok) return members;
            call.hasJsonBody = hasBody;
            const waitMs = call.waitMs();
            if (waitMs > 0) request.raw.socket.setTimeout(waitMs + deps.responseTakenTimeoutMs);
            return hasPathParameters ? success({ ...members.value, ...Object(request.params) }) : members;
          },
          respond({ body, outcome, preferenceApplied }) {
            const value = responseField === undefined ? body : Reflect.get(body, responseField);
            const text = JSON.stringify(value);
            if (preferenceApplied !== undefined) reply.header('preference-applied', preferenceApplied);
            if (outcome === 'replayed') reply.header('idempotent-replayed', 'true');
            reply.code(statuses[outcome]).header('content-type', 'application/json; charset=utf-8').send(text);
          },
          reject: (failure) => void sendFailure(reply, failure, deps),
        });
        return reply;
      },
    });
  }
}

const statuses: Readonly<Record<Success, number>> = { created: 201, accepted: 202, replayed: 200, ok: 200 };

/**
 * Returns the members of a request without a body: the parameters of its query. `name.KEY` is a key of the map `name`.
 */
function queryMembers({ query }: FastifyRequest, maps: readonly string[]): Members {
  if (maps.length === 0) return Object(query);
  const members: Record<string, unknown> = { ...Object(query) };
  for (const map of maps) {
    const keys = Object.keys(members).filter((name) => name.startsWith(`${map}.`));
    if (keys.length === 0) continue;
    // fromEntries defines own properties, including `__proto__`.
    members[map] = Object.fromEntries(keys.map((name) => [name.slice(map.length + 1), members[name]]));
    for (const name of keys) delete members[name];
  }
  return members;
}
