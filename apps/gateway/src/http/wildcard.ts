import type { FastifyRequest } from 'fastify';

/** What stands in the place of the `*` of a route, percent-decoded. */
export function wildcardOf({ params }: FastifyRequest): string {
  return String(Reflect.get(Object(params), '*') ?? '');
}
