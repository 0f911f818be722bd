import type { Failure } from '@gateway/domain/failure';
import type { FastifyInstance } from 'fastify';

/**
 * Knows the routes that are registered from now on, and tells of a URL that reached none whether no route has its path, or one
 * with other methods: the framework answers 404 in both cases.
 */
export function watchRoutes(app: FastifyInstance): (url: string) => Failure {
  const methods = new Map<string, string>();
  app.addHook('onRoute', ({ url: route, method }) => {
    // A route for all methods, such as Connect's, refuses by itself those that it does not take.
    if (typeof method !== 'string') return;
    const before = methods.get(route);
    methods.set(route, before === undefined ? method : `${before}, ${method}`);
  });
  return (url) => {
    const [path = ''] = url.split('?', 1);
    for (const [route, allow] of methods) {
      const isKnown = route.endsWith('*') ? path.startsWith(route.slice(0, -1)) : path === route;
      if (isKnown) return { kind: 'method_not_allowed', allow };
    }
    return { kind: 'not_found' };
  };
}
