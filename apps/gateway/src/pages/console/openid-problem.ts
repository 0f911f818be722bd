import { AuthorizationResponseError, ResponseBodyError, WWWAuthenticateChallengeError } from 'openid-client';

/** Why a sign-in with OpenID Connect failed. */
export interface OpenIdProblem {
  /**
   * - `account`: the person may not use the console.
   * - `expired`: the sign-in took too long, was completed before, or did not begin in this browser.
   * - `provider`: the provider does not respond, or reports its own failure.
   * - `configuration`: the settings of the gateway and those at the provider do not match.
   */
  readonly kind: 'account' | 'expired' | 'provider' | 'configuration';
  /** A text for the log, without values of the request. */
  readonly reason: string;
  /** The provider's error code (RFC 6749, 4.1.2.1 and 5.2). */
  readonly error?: string | undefined;
  readonly error_description?: string | undefined;
}

type ProviderError = Pick<OpenIdProblem, 'error' | 'error_description'>;

/** Error codes whose cause is not the configuration (RFC 6749, 4.1.2.1 and 5.2; OpenID Connect Core 1.0, 3.1.2.6). */
const kindByError: Readonly<Record<string, OpenIdProblem['kind']>> = {
  access_denied: 'account',
  account_selection_required: 'account',
  consent_required: 'account',
  interaction_required: 'account',
  login_required: 'account',
  invalid_grant: 'expired',
  server_error: 'provider',
  temporarily_unavailable: 'provider',
};

/** Returns the problem of an error that openid-client threw. */
export async function problemOf(error: unknown): Promise<OpenIdProblem> {
  const reason = reasonOf(error);
  if (error instanceof AuthorizationResponseError || error instanceof ResponseBodyError) {
    const hasFailed = 'status' in error && isOwnFailure(error.status);
    return { kind: hasFailed ? 'provider' : (kindByError[error.error] ?? 'configuration'), reason, ...loggable(error) };
  }
  if (error instanceof WWWAuthenticateChallengeError) {
    const [challenge] = error.cause;
    const body = await error.response.json().catch(() => undefined);
    return { kind: 'configuration', reason, ...loggable({ ...Object(body), ...challenge?.parameters }) };
  }
  return { kind: isUnreachable(error) ? 'provider' : 'configuration', reason };
}

/** openid-client describes the details in the cause. */
function reasonOf(error: unknown): string {
  const { message, cause } = Object(error);
  return [message, cause instanceof Response ? cause.status : cause?.message].filter(Boolean).join(': ');
}

/** Whether the provider did not respond, or with a status that says so. */
function isUnreachable(error: unknown): boolean {
  const { code, cause, name } = Object(error);
  if (cause instanceof Response) return isOwnFailure(cause.status);
  // `fetch` throws a TypeError whose cause is the error of the socket.
  return code === 'OAUTH_TIMEOUT' || name === 'TimeoutError' || (error instanceof TypeError && cause instanceof Error);
}

const isOwnFailure = (status: number) => status >= 500 || status === 429;

/** Returns the provider's error for the log. */
function loggable({ error, error_description }: { readonly [Member in keyof ProviderError]?: unknown }): ProviderError {
  return { error: withoutPeople(error), error_description: withoutPeople(error_description) };
}

/** Providers name people in descriptions: by email address, or as a text in quotation marks that is not a URL. */
function withoutPeople(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  return text.slice(0, 400).replaceAll(/\S*@\S*|(["'])(?!\w+:\/\/).*?\1/g, '…');
}
