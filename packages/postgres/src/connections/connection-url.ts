import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { type ConnectionOptions, checkServerIdentity } from 'node:tls';
import { InvalidValue } from '@order-gateway/runtime/variables';

/** The values of `sslmode`, with libpq's names. Unlike in libpq, `allow` means the same as `require`. */
const tlsModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'] as const;

type TlsMode = (typeof tlsModes)[number];

/**
 * The parameters of libpq that change neither the security nor the server of a connection, and that have no use here:
 * the gateway sets its own time limits, name, encoding and keepalives.
 */
const ignoredParameters = [
  'client_encoding',
  'connect_timeout',
  'fallback_application_name',
  'gsslib',
  'keepalives',
  'keepalives_count',
  'keepalives_idle',
  'keepalives_interval',
  'krbsrvname',
  'sslcompression',
  'sslsni',
  'tcp_user_timeout',
] as const;

/** The parameters of libpq that the gateway does not support. The server would reject them as unknown settings. */
const refusedParameters = [
  'dbname',
  'gssdelegation',
  'gssencmode',
  'host',
  'hostaddr',
  'load_balance_hosts',
  'max_protocol_version',
  'min_protocol_version',
  'passfile',
  'password',
  'port',
  'replication',
  'require_auth',
  'requirepeer',
  'requiressl',
  'service',
  'servicefile',
  'ssl_max_protocol_version',
  'ssl_min_protocol_version',
  'sslcert',
  'sslcertmode',
  'sslcrl',
  'sslcrldir',
  'sslkey',
  'sslpassword',
  'user',
] as const;

/** A connection URL as the driver and this package understand it. */
export interface ConnectionUrl {
  /** The URL for the driver. It lacks `sslrootcert`, which the driver would send to the server. */
  readonly driverUrl: string;
  /** The host and port, or several of them, and the database, without user and password. */
  readonly name: string;
  /** How a connection is secured; `undefined`: without TLS. */
  readonly tls: TlsSettings | undefined;
}

/** How a connection is secured, according to `sslmode`, `sslnegotiation` and `sslrootcert`. */
export interface TlsSettings {
  /** Whether the connection is used without TLS if the server rejects TLS. */
  readonly isOptional: boolean;
  /** Whether TLS begins immediately, without asking the server first. */
  readonly isDirect: boolean;
  /**
   * Returns the TLS options for a host. With `verify-full`, they check the certificate for that host, because without a
   * server name, as for an IP address, Node.js would check it for `localhost`.
   */
  optionsFor(host: string): ConnectionOptions;
}

const urlParts = /^postgres(?:ql)?:\/\/(?:[^/?#]*@)?([^/?#@]*)(\/[^?#]*)?(?:\?([^#]*))?$/;

/**
 * Parses a connection URL. Without `sslmode`, the certificate of a remote host must be valid, because the driver sends
 * the password in plain text to a server that asks for it. Throws {@link InvalidValue}: its message completes
 * "DATABASE_URL …" and contains no password.
 */
export function parseConnectionUrl(text: string): ConnectionUrl {
  const [, hosts = '', path = '', query = ''] = urlParts.exec(text) ?? [];
  // Only the driver can parse several hosts, so only the first host of a list is checked.
  const isUrl = urlParts.test(text) && URL.canParse(text.replace(hosts, hosts.split(',')[0] ?? ''));
  if (!(isUrl && isDecodable(text.split('?')[0] ?? '')))
    throw new InvalidValue(
      'must percent-encode special characters in the user and the password, such as # as %23 and % as %25, and be a URL such as postgres://USER:PASSWORD@HOST:5432/DATABASE',
    );
  const parameters = new URLSearchParams(query);
  const rootFile = parameters.get('sslrootcert') || undefined;
  const mode = modeOf(parameters.get('sslmode') || parameters.get('ssl') || undefined, hosts, rootFile);
  const root = rootFile === undefined || rootFile === 'system' ? undefined : readRootCertificate(rootFile);
  parameters.delete('sslrootcert');
  requireSupported(parameters, mode);
  for (const name of ['channel_binding', ...ignoredParameters]) parameters.delete(name);
  return {
    driverUrl: `${text.split('?')[0]}?${parameters}`,
    name: `${hosts.includes(':') || hosts.includes(',') ? hosts : `${hosts}:5432`}${path}`,
    tls:
      mode === 'disable'
        ? undefined
        : {
            isOptional: mode === 'prefer',
            isDirect: (parameters.get('sslnegotiation') || process.env.PGSSLNEGOTIATION) === 'direct',
            optionsFor: (host) => tlsOptions(mode, host, root),
          },
  };
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Channel binding proves that the server has the certificate of the connection. The driver lacks it, but a connection
 * with `verify-full` only accepts the server's own certificate.
 */
function requireSupported(parameters: URLSearchParams, mode: TlsMode): void {
  if (parameters.get('channel_binding') === 'require' && mode !== 'verify-full')
    throw new InvalidValue('has channel_binding=require, which needs sslmode=verify-full instead');
  const refused = refusedParameters.find((name) => parameters.has(name));
  if (refused !== undefined) throw new InvalidValue(`has the parameter ${refused}, which is not supported`);
}

function tlsOptions(mode: TlsMode, host: string, root: string | undefined): ConnectionOptions {
  if (mode !== 'verify-ca' && mode !== 'verify-full') return { rejectUnauthorized: false };
  return {
    ...(root !== undefined && { ca: root }),
    checkServerIdentity: (_name, certificate) =>
      mode === 'verify-ca' ? undefined : checkServerIdentity(host, certificate),
  };
}

function modeOf(text: string | undefined, hosts: string, rootFile: string | undefined): TlsMode {
  if (text === undefined) return rootFile === undefined && hosts.split(',').every(isLocal) ? 'disable' : 'verify-full';
  const mode = tlsModes.find((known) => known === text);
  if (mode === undefined)
    throw new InvalidValue(`has sslmode ${JSON.stringify(text)}, which must be one of ${tlsModes.join(', ')}`);
  // As in libpq, naming a root certificate requests verification of the server's certificate.
  return mode === 'require' && rootFile !== undefined ? 'verify-ca' : mode;
}

/** Whether a host is this machine: a loopback address or the folder of a Unix socket. PGHOST replaces an empty host. */
function isLocal(hostAndPort: string): boolean {
  const host = hostAndPort.replace(/:\d*$/, '').replaceAll(/%2f/gi, '/') || process.env.PGHOST || 'localhost';
  return host === 'localhost' || host === '[::1]' || host.startsWith('/') || (isIPv4(host) && host.startsWith('127.'));
}

/** Certificates by file. Each file is read once, so that a reconnect does not depend on it. */
const rootCertificates = new Map<string, string>();

function readRootCertificate(file: string): string {
  const cached = rootCertificates.get(file);
  if (cached !== undefined) return cached;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new InvalidValue(`has sslrootcert ${JSON.stringify(file)}, which can't be read (${code})`);
  }
  try {
    new X509Certificate(text);
  } catch {
    throw new InvalidValue(`has sslrootcert ${JSON.stringify(file)}, which must hold a certificate in PEM`);
  }
  rootCertificates.set(file, text);
  return text;
}
