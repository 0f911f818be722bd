import { type ConsolePerson, consoleRoles, isClientId, merchantNameRule } from '@order-gateway/domain/accounts';
import { textError } from '@order-gateway/domain/requests';
import { failed, type Result, success } from '@order-gateway/domain/result';
import * as client from 'openid-client';
import { type OpenIdProblem, problemOf } from './openid-problem.ts';

/** A provider of OpenID Connect, and the gateway's credentials at the provider. */
export interface OpenIdSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

export type OpenId = ReturnType<typeof createOpenId>;

/** The values that the browser keeps until the provider's redirect. `state` is also in the query of the redirect. */
export interface OpenIdSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The claim of the ID token that contains the merchant and the person's role: `CLIENT_ID:ROLE`. */
const claimName = 'order_gateway';

/** The time limit of one request to the provider. */
const timeoutSeconds = 3;

/** The maximum number of sign-ins that one process completes with the provider at the same time. */
const inFlightMax = 50;

/** Signs people in with OpenID Connect: the authorization code flow with PKCE, state and nonce. */
export function createOpenId(
  { issuer, clientId, clientSecret }: OpenIdSettings,
  redirectUri: () => string,
  patience = 1,
) {
  let discovered: Promise<client.Configuration> | undefined;
  let inFlight = 0;
  const discover = async () => {
    const url = new URL(issuer);
    // The configuration accepts http only for a provider on this machine.
    const execute = [
      client.enableNonRepudiationChecks,
      ...(url.protocol === 'http:' ? [client.allowInsecureRequests] : []),
    ];
    discovered ??= client.discovery(url, clientId, clientSecret, authenticationBy(clientSecret), {
      execute,
      timeout: timeoutSeconds * patience,
    });
    // A failure is not cached.
    return discovered.catch((error) => {
      discovered = undefined;
      throw error;
    });
  };
  return {
    /** Begins a sign-in. Returns the provider's URL, and the secrets that the browser keeps. */
    async begin(): Promise<Result<{ readonly url: string; readonly secrets: OpenIdSecrets }, OpenIdProblem>> {
      const [state, nonce, verifier] = [client.randomState(), client.randomNonce(), client.randomPKCECodeVerifier()];
      try {
        const { href } = client.buildAuthorizationUrl(await discover(), {
          redirect_uri: redirectUri(),
          scope: 'openid profile email',
          state,
          nonce,
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
        });
        return success({ url: href, secrets: { state, nonce, verifier } });
      } catch (error) {
        return failed(await problemOf(error));
      }
    },
    /** Completes a sign-in with the query of the provider's redirect. */
    async complete(query: string, secrets: OpenIdSecrets): Promise<Result<ConsolePerson, OpenIdProblem>> {
      const { state: expectedState, nonce: expectedNonce, verifier: pkceCodeVerifier } = secrets;
      const checks = { expectedState, expectedNonce, pkceCodeVerifier, idTokenExpected: true };
      if (inFlight >= inFlightMax) return failed({ kind: 'provider', reason: 'too many sign-ins at the same time' });
      inFlight += 1;
      try {
        const address = new URL(`${redirectUri()}?${query}`);
        const tokens = await client.authorizationCodeGrant(await discover(), address, checks);
        const person = personOf(tokens.claims() ?? {});
        return typeof person === 'string' ? failed({ kind: 'account', reason: person }) : success(person);
      } catch (error) {
        return failed(await problemOf(error));
      } finally {
        inFlight -= 1;
      }
    },
  };
}

/**
 * Returns the function that adds the client secret to a request. Uses `client_secret_post` only if the provider's
 * metadata have no `client_secret_basic`, which is the default of OpenID Connect Discovery 1.0, 3.
 */
function authenticationBy(clientSecret: string): client.ClientAuth {
  const [basic, post] = [client.ClientSecretBasic(clientSecret), client.ClientSecretPost(clientSecret)];
  return (provider, ...request) => {
    const { token_endpoint_auth_methods_supported: methods = ['client_secret_basic'] } = provider;
    const usesPost = methods.includes('client_secret_post') && !methods.includes('client_secret_basic');
    return (usesPost ? post : basic)(provider, ...request);
  };
}

/**
 * Returns the person that the claims describe, or why the claims give no access. The audit log shows the name, so it is
 * the verified email address or the subject, which people can't choose themselves.
 */
function personOf({ [claimName]: claim, email, email_verified, sub }: Readonly<Record<string, unknown>>) {
  if (claim === undefined) return `the ID token has no claim ${claimName}`;
  const [clientId = '', claimedRole, ...furtherParts] = typeof claim === 'string' ? claim.split(':') : [];
  const role = furtherParts.length === 0 ? consoleRoles.find((known) => known === claimedRole) : undefined;
  if (role === undefined || !isClientId(clientId)) return `the claim ${claimName} is not CLIENT_ID:ROLE`;
  const name = email_verified === true && typeof email === 'string' ? email : sub;
  if (typeof name !== 'string' || textError(merchantNameRule, name) !== undefined) {
    return 'neither the verified email address nor the subject is a name for the audit log';
  }
  return { clientId, role, name };
}
