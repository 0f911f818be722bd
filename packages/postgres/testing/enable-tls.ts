import { chown, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { withSession } from '@order-gateway/dev-postgres/testing';
import { selfSigned } from './self-signed.ts';

/**
 * Gives a server on this machine a certificate and enables TLS, which stays enabled after a restart. Returns the query
 * of a connection URL that requires TLS and verifies the certificate.
 */
export async function enableTls(
  serverUrl: string,
  certificate = selfSigned('localhost', '127.0.0.1'),
): Promise<string> {
  return withSession(serverUrl, async (session) => {
    const [row] = await session`show data_directory`;
    const file = (name: string) => join(String(row?.data_directory), name);
    const { uid, gid } = await stat(file('PG_VERSION'));
    for (const [name, text] of [
      ['server.crt', certificate.cert],
      ['server.key', certificate.key],
    ] as const) {
      await writeFile(file(name), text, { mode: 0o600 });
      await chown(file(name), uid, gid);
    }
    await session`alter system set ssl = on`;
    await session`select pg_reload_conf()`;
    while ((await session`show ssl`)[0]?.ssl !== 'on') await sleep(20);
    return `sslmode=verify-full&sslrootcert=${encodeURIComponent(file('server.crt'))}`;
  });
}
