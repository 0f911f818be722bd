import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { missing } from '../../../../tools/skip-if-missing.ts';

/** Why certificates can't be made on this machine. Node.js reads X.509 but does not write it, so openssl must. */
export const noCertificates = missing('openssl');

/** A folder with an authority that signs certificates for tests. */
export interface Authority {
  readonly folder: string;
  readonly caFile: string;
  readonly ca: Buffer;
  /** Makes a certificate for this machine and returns the paths and contents of its files. A name that is used is replaced. */
  issue(name: string): { certFile: string; keyFile: string; cert: Buffer; key: Buffer };
  remove(): void;
}

export function createAuthority(): Authority {
  const folder = mkdtempSync(join(tmpdir(), 'certificates-'));
  const make = (name: string, args: readonly string[]) => {
    const files = { certFile: join(folder, `${name}.pem`), keyFile: join(folder, `${name}.key`) };
    const kind = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
    const output = ['-out', files.certFile, '-keyout', files.keyFile];
    execFileSync('openssl', [...kind, '-subj', `/CN=${name}`, ...output, ...args], { stdio: 'pipe' });
    return { ...files, cert: readFileSync(files.certFile), key: readFileSync(files.keyFile) };
  };
  const authority = make('authority', []);
  const signed = ['-CA', authority.certFile, '-CAkey', authority.keyFile];
  const names = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-addext', 'basicConstraints=CA:FALSE'];
  return {
    folder,
    caFile: authority.certFile,
    ca: authority.cert,
    issue: (name) => make(name, [...signed, ...names]),
    remove: () => rmSync(folder, { recursive: true }),
  };
}
