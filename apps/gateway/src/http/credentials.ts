import type { IncomingHttpHeaders } from 'node:http';
import type { PresentedCredentials } from '../authenticate.ts';

/** What a request brings in the two headers of its client's credentials. */
export function credentialsOf(headers: IncomingHttpHeaders): PresentedCredentials {
  return { clientId: headers['x-client-id']?.toString(), clientSecret: headers['x-client-secret']?.toString() };
}
