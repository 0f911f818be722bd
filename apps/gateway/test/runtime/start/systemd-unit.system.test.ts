import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, copyFile, mkdir, mkdtempDisposable, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startTestServer } from '@order-gateway/dev-postgres/testing';
import { migrateDatabase } from '@order-gateway/postgres/migrate';
import { enableTls } from '@order-gateway/postgres/testing/enable-tls';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { mustSkip } from '../../../../../tools/skip-if-missing.ts';
import { readText, temporaryFolder } from '../../../../../tools/test-resources.ts';
import { createAuthority, noCertificates } from '../../helpers/certificates.ts';
import { endLater, endProcesses, stopGracefully } from '../../helpers/gateway-process.ts';

// Runs the unit without systemd: its command, as another user, with copies of the files that LoadCredential names.

afterEach(endProcesses);

const root = join(import.meta.dirname, '../../../../..');
const read = (path: string) => readFile(join(root, path), 'utf8');
const unit = await read('deploy/systemd/order-gateway.service');
const guide = await read('docs/install.md');

/** The user of the service, if root runs the tests: `nobody`, because root can read everything. */
const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined;
const mayRead = (path: string) =>
  promisify(execFile)('cat', [path], { ...user, cwd: '/' }).then(
    () => true,
    () => false,
  );
const reason = (await mayRead(join(root, 'apps/gateway/src/main.ts')))
  ? noCertificates
  : 'another user cannot read the working tree';

/** The folder in which systemd puts the credentials of the unit. */
const systemdFolder = '/run/credentials/order-gateway.service';

/** Returns the values of a setting of the unit. */
const settingsOf = (name: string) =>
  [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value);

test('systemd never stops restarting the gateway, and journald drops none of its lines', () => {
  expect([...settingsOf('StartLimitIntervalSec'), ...settingsOf('LogRateLimitIntervalSec')]).toEqual(['0', '0']);
});

test('a health check behind HAProxy may take longer than its interval', async () => {
  const haproxy = await read('deploy/haproxy.cfg');
  const [, limit] = /^ +timeout check (\d+)s$/m.exec(haproxy) ?? [];
  const [, interval] = /default-server check inter (\d+)s/.exec(haproxy) ?? [];
  expect(Number(limit)).toBeGreaterThan(Number(interval));
});

/** Runs the code block of the guide that contains `part`, in the folder `cwd`, with `etc` as /etc/order-gateway. */
async function runGuide(part: string, etc: string, cwd: string): Promise<void> {
  const blocks = [...guide.matchAll(/```sh\n([^`]*)```/g)].map(([, block = '']) => block);
  const script = blocks.find((block) => block.includes(part))?.replaceAll('/etc/order-gateway', etc) ?? 'exit 1';
  await promisify(execFile)('sh', ['-ec', script.replace(/^systemctl .*$/gm, '')], { cwd });
}

/**
 * Copies the files and folders of LoadCredential, readable only by the service's user, as systemd does. Returns the
 * folder with the copies.
 */
async function loadCredentials(etc: string): Promise<string> {
  // Other users can't read the folder for temporary files of a test run.
  const { path: folder, remove } = await mkdtempDisposable('/tmp/credentials-');
  onTestFinished(remove);
  for (const setting of settingsOf('LoadCredential')) {
    const [id = '', path = ''] = setting.replace('/etc/order-gateway', etc).split(':');
    const isFolder = (await stat(path)).isDirectory();
    const names = isFolder ? await readdir(path) : [''];
    for (const name of names) {
      const copy = join(folder, isFolder ? `${id}_${name}` : id);
      const text = await readFile(join(path, name), 'utf8');
      await writeFile(copy, text.replaceAll(systemdFolder, folder), { mode: 0o400 });
      if (user) await chown(copy, user.uid, user.gid);
    }
  }
  if (user) await chown(folder, user.uid, user.gid);
  return folder;
}

/** Starts the command of the unit with its environment. */
async function startUnit(etc: string) {
  const credentials = await loadCredentials(etc);
  const files = settingsOf('EnvironmentFile').map((path) => readFile(path.replace('/etc/order-gateway', etc), 'utf8'));
  const lines = [...settingsOf('Environment').flatMap((setting) => setting.split(' ')), ...(await Promise.all(files))];
  const text = lines.join('\n').replaceAll('%d', systemdFolder).replaceAll(systemdFolder, credentials);
  const variables = Object.fromEntries([...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]));
  const [, ...args] = settingsOf('ExecStart').join('').split(' ');
  const env = { HTTP_PORT: '0', GRPC_PORT: '0', ADMIN_PORT: '0', DRAIN_DELAY_MS: '0', ...variables };
  const child = spawn(process.execPath, args, { ...user, cwd: root, env });
  endLater(child);
  return { child, stdout: readText(child.stdout), stderr: readText(child.stderr) };
}

test.skipIf(mustSkip('the unit with TLS', reason))(
  'the unit connects to the database over TLS and serves TLS, with the files of the installation guide',
  async ({ skip }) => {
    const server = await startTestServer();
    onTestFinished(server.stop);
    const tls = new URLSearchParams(await enableTls(server.url));
    const database = await server.createDatabase(migrateDatabase);
    const authority = createAuthority();
    onTestFinished(authority.remove);
    const { certFile, keyFile } = authority.issue('gateway');
    // The files that an operator has, and /etc/order-gateway after the second section of the guide.
    const certificates = await temporaryFolder();
    await copyFile(tls.get('sslrootcert') ?? '', join(certificates, 'database-ca.crt'));
    await copyFile(certFile, join(certificates, 'cert.pem'));
    await copyFile(keyFile, join(certificates, 'key.pem'));
    await copyFile(authority.caFile, join(certificates, 'clients.pem'));
    const etc = await temporaryFolder();
    await mkdir(join(etc, 'tls'));
    for (const name of ['owner-url', 'database-url']) await writeFile(join(etc, name), `${database.url}\n`);
    await writeFile(join(etc, 'secrets-key'), `${Buffer.alloc(32, 1).toString('base64')}\n`);
    await writeFile(join(etc, 'env'), 'BASE_URL=https://pay.example.com\n');
    await runGuide('database-ca.crt', etc, certificates);
    await runGuide('TLS_CERT_FILE', etc, certificates);

    const { child, stdout, stderr } = await startUnit(etc);
    await expect.poll(() => child.exitCode !== null || stdout().includes('"ready"')).toBe(true);
    expect(stdout(), stderr()).toContain('"ready"');
    const ready = JSON.parse(
      stdout()
        .split('\n')
        .find((line) => line.includes('"ready"')) ?? '{}',
    );
    const readiness = async () => {
      const [response] = await once(get(`${ready.http_url}/health/ready`, { ca: authority.ca }), 'response');
      return response.resume().statusCode;
    };
    // On a busy machine, the check of the database can exceed its limit.
    await expect.poll(readiness).toBe(200);
    const sessions = await runQuery(
      server.url,
      `select distinct ssl from pg_stat_activity join pg_stat_ssl using (pid) where datname = '${new URL(database.url).pathname.slice(1)}'`,
    );
    expect(sessions).toEqual([{ ssl: true }]);
    await stopGracefully(child, skip);
  },
);
