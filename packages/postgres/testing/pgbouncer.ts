import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@order-gateway/dev-postgres';
import { chooseServerUser } from '@order-gateway/dev-postgres/testing';

export interface PgBouncer extends AsyncDisposable {
  /** Returns the URL of a database of the server through PgBouncer. */
  through(databaseUrl: string): string;
}

/** Starts PgBouncer in front of a server, with `settings` as lines of its section `[pgbouncer]`. */
export async function startPgBouncer(serverUrl: string, settings: string): Promise<PgBouncer> {
  const server = new URL(serverUrl);
  const port = await freePort(undefined);
  const folder = await mkdtemp(join(tmpdir(), 'pgbouncer-'));
  const users = join(folder, 'userlist.txt');
  await writeFile(users, `"${server.username}" "${decodeURIComponent(server.password)}"\n`);
  const config = join(folder, 'pgbouncer.ini');
  await writeFile(
    config,
    `[databases]
* = host=${server.hostname} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${users}
default_pool_size = 64
${settings}
`,
  );
  // PgBouncer refuses to run as root, as PostgreSQL does.
  const { prefix, ids } = await chooseServerUser(folder);
  const [file = '', ...args] = [...prefix, 'pgbouncer', config];
  const child = spawn(file, args, { ...ids, stdio: ['ignore', 'ignore', 'pipe'], cwd: '/' });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    log += text;
  });
  while (!(await isListening(port))) {
    if (child.exitCode !== null) throw new Error(`PgBouncer does not run: ${log}`);
    await sleep(20);
  }
  return {
    through: (databaseUrl) => Object.assign(new URL(databaseUrl), { host: `127.0.0.1:${port}` }).href,
    async [Symbol.asyncDispose]() {
      // Ends at once, although clients are connected.
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      await rm(folder, { recursive: true });
    },
  };
}

async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
