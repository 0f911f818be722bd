import { type ConsolePerson, consoleRoles, isClientId, merchantNameRule } from '@order-gateway/domain/accounts';
import { textError } from '@order-gateway/domain/requests';
import * as client from 'openid-client';

/** A provider of OpenID Connect, and the gateway's credentials at the provider. */
export interface OpenIdSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

export type OpenId = ReturnType<typeof createOpenId>;

/** The claim of the ID token that contains the merchant and the person's role: `CLIENT_ID:ROLE`. */
const claimName = 'order_gateway';

/** The time limit of one request to the provider. */
const timeoutSeconds = 3;

/** The maximum number of sign-ins that one process completes with the provider at the same time. */
const inFlightMax = 50;

/** Signs people in with OpenID Connect: the authorization code flow with PKCE, state and nonce. */
export function createOpenId({ issuer, clientId, clientSecret }: OpenIdSettings, redirectUri: () => string) {
  let discovered: Promise<client.Configuration> | undefined;
  let inFlight = 0;
  const discover = async () => {
    const url = new URL(issuer);
    // The configuration accepts http only for a provider on this machine.
    const execute = [
      client.enableNonRepudiationChecks,
      ...(url.protocol === 'http:' ? [client.allowInsecureRequests] : []),
    ];
    discovered ??= client.discovery(url, clientId, clientSecret, undefined, { execute, timeout: timeoutSeconds });
    // A failure is not cached.
    return discovered.catch((error) => {
      discovered = undefined;
      throw error;
    });
  };
  return {
    /** Begins a sign-in. Returns the provider's URL, and a secret that the browser keeps until the redirect back. */
    async begin(): Promise<{ readonly url: string; readonly secret: string }> {
      const configuration = await discover();
      const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()];
      const { href } = client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri(),
        scope: 'openid profile email',
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      });
      return { url: href, secret: [state, nonce, verifier].join('.') };
    },
    /**
     * Completes a sign-in with the query of the provider's redirect. Returns `undefined` if the person may not use the
     * console. Rejects if the redirect or the provider's response is not valid, or if too many sign-ins are in flight.
     */
    async complete(query: string, secret: string): Promise<ConsolePerson | undefined> {
      const [expectedState = '', expectedNonce = '', pkceCodeVerifier = ''] = secret.split('.');
      const checks = { expectedState, expectedNonce, pkceCodeVerifier, idTokenExpected: true };
      if (inFlight >= inFlightMax) throw new Error('too many sign-ins at the same time');
      inFlight += 1;
      try {
        const address = new URL(`${redirectUri()}?${query}`);
        const tokens = await client.authorizationCodeGrant(await discover(), address, checks);
        return personOf(tokens.claims() ?? {});
      } finally {
        inFlight -= 1;
      }
    },
  };
}

/**
 * Returns the person that the claims describe, or `undefined` if the claims give no access. The audit log shows the
 * name, so it is the verified email address or the subject, which people can't choose themselves.
 */
function personOf({ [claimName]: claim, email, email_verified, sub }: Readonly<Record<string, unknown>>) {
  const [clientId = '', claimedRole, ...furtherParts] = typeof claim === 'string' ? claim.split(':') : [];
  const role = furtherParts.length === 0 ? consoleRoles.find((known) => known === claimedRole) : undefined;
  const name = email_verified === true && typeof email === 'string' ? email : `${sub}`;
  if (role === undefined || !isClientId(clientId) || textError(merchantNameRule, name) !== undefined) return undefined;
  return { clientId, role, name };
}
