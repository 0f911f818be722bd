import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { endWithThisProcess } from '@order-gateway/dev-postgres/testing';

const root = join(import.meta.dirname, '../../../..');

/** The Node.js options and the program of `pnpm start`. */
const [, ...startArguments] = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts.start.split(' ');

interface ReadyLine {
  readonly http_url: string;
  readonly grpc_address: string;
}

/** Starts a gateway on a migrated database, on free ports. Apps do not import each other, so it is a process. */
export async function startGateway(databaseUrl: string, variables: Readonly<Record<string, string>> = {}) {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const ports = { HTTP_PORT: '0', GRPC_PORT: '0', ADMIN_PORT: '0' };
  const child = spawn(process.execPath, startArguments, {
    cwd: root,
    env: {
      PATH,
      NODE_COMPILE_CACHE,
      ...ports,
      DATABASE_URL: databaseUrl,
      DRAIN_DELAY_MS: '0',
      MIGRATE: 'off',
      ...variables,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  endWithThisProcess(child);
  const ready = await new Promise<ReadyLine>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const entry = JSON.parse(line);
      if (entry.msg === 'ready') resolve(entry);
    });
    child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}`)));
  });
  return {
    url: ready.http_url,
    grpcUrl: `http://${ready.grpc_address}`,
    async stop(): Promise<void> {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
}
