import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';
import type { OpenIdSettings } from '../../src/pages/console/openid.ts';
import { bind } from '../../src/runtime/network/listen.ts';

type Claims = Readonly<Record<string, unknown>>;

/**
 * Starts a real OpenID Connect provider on this machine. It signs in the person whose claims are set, without a form.
 * `authMethod` is the only way in which it accepts the client secret.
 */
export async function startIdentityProvider(
  authMethod: 'client_secret_basic' | 'client_secret_post' = 'client_secret_basic',
) {
  const server = createServer();
  const port = await bind(server, { port: 0, host: '127.0.0.1' });
  const settings: OpenIdSettings = {
    issuer: `http://127.0.0.1:${port}`,
    clientId: 'gateway',
    clientSecret: 's'.repeat(40),
  };
  const client = {
    token_endpoint_auth_method: authMethod,
    client_id: settings.clientId,
    client_secret: settings.clientSecret,
  };
  let claims: Claims = {};
  return {
    settings,
    /** Starts to accept sign-ins for the gateway with this base URL. */
    serve(baseUrl: string) {
      const provider = new Provider(settings.issuer, {
        clients: [{ ...client, redirect_uris: [`${baseUrl}/console/openid/callback`] }],
        claims: { openid: ['sub', 'order_gateway'], email: ['email', 'email_verified'] },
        conformIdTokenClaims: false,
        clientAuthMethods: [authMethod],
        cookies: { keys: ['key'] },
        features: { devInteractions: { enabled: false } },
        ttl: { AccessToken: 60, Grant: 60, IdToken: 60, Interaction: 60, Session: 60 },
        pkce: { required: () => true },
        interactions: { url: () => '/sign-in' },
        findAccount: (_context: unknown, accountId: string) => ({
          accountId,
          claims: () => ({ sub: accountId, ...claims }),
        }),
        async loadExistingGrant({ oidc }: { oidc: { client: { clientId: string }; session: { accountId: string } } }) {
          const grant = new provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
          grant.addOIDCScope('openid profile email');
          await grant.save();
          return grant;
        },
      });
      const respond = provider.callback();
      server.on('request', (request, response) => {
        const hasBasic = request.headers.authorization !== undefined;
        // oidc-provider accepts either way, regardless of its metadata.
        if (request.url === '/token' && hasBasic !== (authMethod === 'client_secret_basic')) {
          return response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}');
        }
        if (request.url !== '/sign-in') return respond(request, response);
        provider.interactionFinished(request, response, { login: { accountId: 'ada-1' } }).catch((error) => {
          response.writeHead(500).end(String(error));
        });
      });
    },
    /** Sets the claims of the person who signs in next. */
    setClaims(next: Claims) {
      claims = next;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}
