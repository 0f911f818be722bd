import type { MerchantId } from '@gateway/domain/merchant';
import type { FastifyInstance } from 'fastify';
import type { CallRecord, Door, Log } from '../log.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** What became of the request; undefined while it is not known, and for requests that another place logs. */
    outcome: CallRecord['code'] | undefined;
    merchantId: MerchantId | undefined;
    door: Door;
  }
}

/** Writes one line for each request whose outcome is told on the request. */
export function logRequests(app: FastifyInstance, log: Log): void {
  app.decorateRequest('outcome', undefined);
  app.decorateRequest('merchantId', undefined);
  app.decorateRequest('door', 'json');
  app.addHook('onResponse', (request, reply, done) => {
    if (request.outcome !== undefined) {
      log.call({
        request_id: request.id,
        door: request.door,
        merchant_id: request.merchantId,
        code: request.outcome,
        duration_ms: reply.elapsedTime,
      });
    }
    done();
  });
}
