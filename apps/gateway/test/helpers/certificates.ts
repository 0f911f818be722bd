import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { missing } from '../../../../tools/skip-if-missing.ts';

/**
 * Why this machine can't create certificates, or `undefined` if it can. Node.js reads X.509 but does not write it, so
 * tests need openssl.
 */
export const noCertificates = missing('openssl');

/** A certificate authority for tests, in its own folder. */
export interface Authority {
  readonly folder: string;
  readonly caFile: string;
  readonly ca: Buffer;
  /** Creates a certificate for this machine. Overwrites an earlier certificate of the same name. */
  issue(name: string): { certFile: string; keyFile: string; cert: Buffer; key: Buffer };
  remove(): void;
}

export function createAuthority(): Authority {
  const folder = mkdtempSync(join(tmpdir(), 'certificates-'));
  const create = (name: string, args: readonly string[]) => {
    const files = { certFile: join(folder, `${name}.pem`), keyFile: join(folder, `${name}.key`) };
    const kind = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    const output = ['-out', files.certFile, '-keyout', files.keyFile];
    execFileSync('openssl', [...kind, '-subj', `/CN=${name}`, ...output, ...args], { stdio: 'pipe' });
    return { ...files, cert: readFileSync(files.certFile), key: readFileSync(files.keyFile) };
  };
  const authority = create('authority', []);
  const signingOptions = ['-CA', authority.certFile, '-CAkey', authority.keyFile];
  const subjectOptions = [
    '-addext',
    'subjectAltName=DNS:localhost,IP:127.0.0.1',
    '-addext',
    'basicConstraints=CA:FALSE',
  ];
  return {
    folder,
    caFile: authority.certFile,
    ca: authority.cert,
    issue: (name) => create(name, [...signingOptions, ...subjectOptions]),
    remove: () => rmSync(folder, { recursive: true }),
  };
}
