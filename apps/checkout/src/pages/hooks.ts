import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Advance, AdvanceDeps } from '../attempts/advance.ts';
import { hasKey } from '../providers/accounts.ts';

/**
 * Adds the address of the providers' webhooks. A webhook is only a hint that an attempt changed: what happened is read
 * from the provider.
 */
export function hookRoutes(app: FastifyInstance, deps: AdvanceDeps & { readonly advance: Advance }): void {
  const { store, providers, accountOf, advance, logger } = deps;
  app.register(async (hooks) => {
    // Signatures are verified over the body as it arrived, whatever its content type.
    hooks.removeAllContentTypeParsers();
    hooks.addContentTypeParser('*', { parseAs: 'string' }, async (_request: FastifyRequest, body: string) => body);
    hooks.post<{ Params: { connectionId: string }; Body: string | undefined }>(
      '/hooks/:connectionId',
      async (request, reply) => {
        const { connectionId } = request.params;
        const connection = await store.findConnection(connectionId);
        // Without a key, nothing can be looked up.
        const verify = connection && hasKey(connection) && providers.get(connection.provider)?.verify;
        if (!verify) return reply.code(404).send();
        const ids = verify(await accountOf(connectionId), request.headers, request.body ?? '');
        if (ids === undefined) return reply.code(400).send();
        await store.makeReversalsDue(connectionId, ids);
        const noticed = await store.findNoticed(connectionId, ids);
        // The provider sends a webhook again if it gets no response within seconds.
        for (const { attemptId } of noticed)
          void advance(attemptId).catch((err: unknown) => logger.warn({ err }, 'a webhook was ignored'));
        return reply.code(204).send();
      },
    );
  });
}
