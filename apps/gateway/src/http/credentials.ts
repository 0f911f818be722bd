import type { FastifyRequest } from 'fastify';
import type { PresentedCredentials } from '../authenticate.ts';

/** What a request brings in the two headers of its client's credentials. */
export function credentialsOf({ headers }: FastifyRequest): PresentedCredentials {
  return { clientId: headers['x-client-id']?.toString(), clientSecret: headers['x-client-secret']?.toString() };
}
