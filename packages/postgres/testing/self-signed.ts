import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { isIPv4 } from 'node:net';

/** A certificate and its key, in PEM. */
export interface SelfSigned {
  readonly cert: string;
  readonly key: string;
}

const tags = { integer: 2, bits: 3, bytes: 4, oid: 6, utf8: 12, time: 24, sequence: 0x30, set: 0x31 } as const;

/** The object identifiers that are used, in DER (RFC 5758, 3.2; RFC 5280, A.1 and 4.2.1.6). */
const oids = { ecdsaWithSha256: '2a8648ce3d040302', commonName: '550403', subjectAltName: '551d11' };

/** The tags of a general name (RFC 5280, 4.2.1.6). */
const generalNames = { dns: 0x82, ipAddress: 0x87 } as const;

/**
 * Makes a certificate for host names and IPv4 addresses that is valid from an hour ago until an hour from now, signed
 * with its own key (RFC 5280, 4.1).
 */
export function selfSigned(...hosts: readonly [string, ...string[]]): SelfSigned {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = der(tags.sequence, der(tags.oid, Buffer.from(oids.ecdsaWithSha256, 'hex')));
  const name = der(tags.sequence, der(tags.set, pair(oids.commonName, der(tags.utf8, Buffer.from(hosts[0])))));
  const names = der(tags.sequence, ...hosts.map(generalName));
  const signed = der(
    tags.sequence,
    der(0xa0, der(tags.integer, Buffer.of(2))),
    der(tags.integer, Buffer.of(1, ...randomBytes(8))),
    algorithm,
    name,
    der(tags.sequence, timestamp(-3_600_000), timestamp(3_600_000)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(tags.sequence, pair(oids.subjectAltName, der(tags.bytes, names)))),
  );
  const signature = der(tags.bits, Buffer.of(0), sign('sha256', signed, privateKey));
  const text = der(tags.sequence, signed, algorithm, signature).toString('base64');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function generalName(host: string): Buffer {
  if (isIPv4(host)) return der(generalNames.ipAddress, Buffer.from(host.split('.').map(Number)));
  return der(generalNames.dns, Buffer.from(host));
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const length = body.length < 0x80 ? Buffer.of(body.length) : Buffer.of(0x82, body.length >> 8, body.length & 0xff);
  return Buffer.concat([Buffer.of(tag), length, body]);
}

function pair(oid: string, value: Buffer): Buffer {
  return der(tags.sequence, der(tags.oid, Buffer.from(oid, 'hex')), value);
}

/** Generalized time, without fractions of a second. */
function timestamp(fromNowMs: number): Buffer {
  const text = new Date(Date.now() + fromNowMs).toISOString();
  return der(tags.time, Buffer.from(`${text.slice(0, 19).replaceAll(/[-:T]/g, '')}Z`));
}
