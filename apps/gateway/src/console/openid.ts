import { type ConsolePerson, consoleRoles, isClientId, merchantNameRule } from '@order-gateway/domain/accounts';
import { textError } from '@order-gateway/domain/requests';
import * as client from 'openid-client';

/** A provider of OpenID Connect, and how it knows the gateway. */
export interface OpenIdSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

export type OpenId = ReturnType<typeof createOpenId>;

/** The claim of the ID token that says for which merchant the person acts, and how: `CLIENT_ID:ROLE`. */
const claimName = 'order_gateway';

/** The time limit of one request to the provider. */
const timeoutSeconds = 3;

/** The sign-ins that the provider may complete at the same time for one process. */
const inFlightMax = 50;

/** Signs people in with OpenID Connect: the authorization code flow with PKCE, state and nonce. */
export function createOpenId({ issuer, clientId, clientSecret }: OpenIdSettings, redirectUri: () => string) {
  let discovered: Promise<client.Configuration> | undefined;
  let inFlight = 0;
  const discover = async () => {
    const url = new URL(issuer);
    // The configuration allows http only to this machine.
    const execute = [
      client.enableNonRepudiationChecks,
      ...(url.protocol === 'http:' ? [client.allowInsecureRequests] : []),
    ];
    discovered ??= client.discovery(url, clientId, clientSecret, undefined, { execute, timeout: timeoutSeconds });
    // Only a success is kept.
    return discovered.catch((error) => {
      discovered = undefined;
      throw error;
    });
  };
  return {
    /** Begins a sign-in. Returns the provider's address, and a secret that the browser keeps until it comes back. */
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
     * console. Rejects if the redirect or the provider's response is not valid.
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

/** The name is one that people can't choose themselves, because the audit log shows it. */
function personOf({ [claimName]: claim, email, email_verified, sub }: Readonly<Record<string, unknown>>) {
  const [clientId = '', sentRole, ...more] = typeof claim === 'string' ? claim.split(':') : [];
  const role = more.length === 0 ? consoleRoles.find((one) => one === sentRole) : undefined;
  const name = String(email_verified === true ? email : sub);
  if (role === undefined || !isClientId(clientId) || textError(merchantNameRule, name) !== undefined) return undefined;
  return { clientId, role, name };
}
