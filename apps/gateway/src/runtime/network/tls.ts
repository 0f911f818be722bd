import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext, type SecureContextOptions, type Server } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from '@order-gateway/runtime/logger';
import { messageOf, StartError } from '@order-gateway/runtime/process';
import { tlsCheckEveryMs } from '../../limits.ts';

/** PEM files, which are read at the start and whenever they change. */
export interface TlsFiles {
  /** The certificate, followed by the intermediate certificates. */
  readonly certFile: string;
  readonly keyFile: string;
  /** The authority that signs the certificates of gRPC clients; absent: clients need no certificate. */
  readonly clientCaFile: string | undefined;
}

export interface TlsPort {
  /** Contains an authority (`ca`) if clients need a certificate. */
  readonly context: SecureContextOptions;
  /** Gives the server each new certificate. Open connections keep the old one. */
  renew(server: Server): void;
}

/**
 * Reads the certificate of both ports, and reads it again when its files change. Rejects with a {@link StartError} for
 * the first file that can't be used.
 */
export async function openTls(files: TlsFiles, logger: Logger) {
  let current = await readContexts(files);
  reportExpiry(current.expiry, logger);
  const renewals: (() => void)[] = [];
  let problem: string | undefined;
  /** Reads the files now. If one is invalid, logs the reason once and keeps using the previous certificate. */
  const reload = async () => {
    try {
      const next = await readContexts(files);
      problem = undefined;
      if (isDeepStrictEqual(next, current)) return;
      current = next;
      for (const renew of renewals) renew();
      logger.info('TLS certificate reloaded');
      reportExpiry(current.expiry, logger);
    } catch (error) {
      if (messageOf(error) === problem) return;
      problem = messageOf(error);
      logger.error({ reason: problem }, 'TLS certificate not reloaded, the previous one stays in use');
    }
  };
  const checking = setInterval(reload, tlsCheckEveryMs).unref();
  const port = (name: 'http' | 'grpc'): TlsPort => ({
    context: current[name],
    renew: (server) => void renewals.push(() => server.setSecureContext(current[name])),
  });
  const expiry = () => current.expiry;
  return { http: port('http'), grpc: port('grpc'), expiry, reload, close: () => clearInterval(checking) };
}

/** Logs an error if a certificate has expired. The ports open regardless, because some callers do not check it. */
function reportExpiry(expiry: Date, logger: Logger): void {
  if (expiry.getTime() <= Date.now())
    logger.error({ expired_at: expiry.toISOString() }, 'the TLS certificate has expired, so most callers reject it');
}

async function readContexts({
  certFile,
  keyFile,
  clientCaFile,
}: TlsFiles): Promise<Record<'http' | 'grpc', SecureContextOptions> & { readonly expiry: Date }> {
  const cert = await readPem('TLS_CERT_FILE', certFile, 'certificate', (pem) => new X509Certificate(pem));
  const key = await readPem('TLS_KEY_FILE', keyFile, 'private key without a passphrase', createPrivateKey);
  if (!cert.parsed.checkPrivateKey(key.parsed))
    throw new StartError(`TLS_KEY_FILE ${keyFile} is not the key of TLS_CERT_FILE ${certFile}.`);
  const http: SecureContextOptions = { cert: cert.pem, key: key.pem, minVersion: 'TLSv1.2' };
  const expiry = cert.parsed.validToDate;
  if (clientCaFile === undefined) return { http, grpc: http, expiry };
  const ca = await readPem('TLS_CLIENT_CA_FILE', clientCaFile, 'certificate', (pem) => new X509Certificate(pem));
  return { http, grpc: { ...http, ca: ca.pem }, expiry };
}

async function readPem<Parsed>(variable: string, file: string, kind: string, parse: (pem: Buffer) => Parsed) {
  let pem: Buffer;
  try {
    pem = await readFile(file);
  } catch (error) {
    throw new StartError(`${variable} ${file} can't be read: ${messageOf(error).split(',')[0]}.`);
  }
  try {
    const parsed = parse(pem);
    // `X509Certificate` parses only the first certificate. This call parses all of them.
    if (kind === 'certificate') createSecureContext({ cert: pem });
    return { pem, parsed };
  } catch {
    throw new StartError(`${variable} ${file} must be a ${kind} in PEM.`);
  }
}
