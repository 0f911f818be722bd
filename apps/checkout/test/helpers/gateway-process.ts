import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { endWithThisProcess } from '@order-gateway/dev-postgres/testing';
import { vi } from 'vitest';
import { waitLimitMs } from '../../../../tools/test-limits.ts';

const root = join(import.meta.dirname, '../../../..');

/** The Node.js options and the program of `start`. */
const [, ...startArguments] = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts.start.split(' ');

interface ReadyLine {
  readonly http_url: string;
  readonly grpc_address: string;
}

type LogLine = Readonly<Record<string, string | undefined>>;

/**
 * Runs `start`, or another program of the gateway, on free ports, with variables that name a database or a folder for
 * one. Apps do not import each other, so the gateway is a process.
 */
export async function startProcess(variables: Readonly<Record<string, string>>, program = startArguments) {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const ports = { HTTP_PORT: '0', GRPC_PORT: '0', ADMIN_PORT: '0', CHECKOUT_PORT: '0' };
  const child = spawn(process.execPath, program, {
    cwd: root,
    env: { PATH, NODE_COMPILE_CACHE, ...ports, DRAIN_DELAY_MS: '0', ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endWithThisProcess(child);
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const lines: LogLine[] = [];
  const ready = await new Promise<ReadyLine>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const entry = JSON.parse(line);
      lines.push(entry);
      if (entry.msg === 'ready') resolve(entry);
    });
    child.once('exit', (code) => reject(new Error(`the gateway ended with ${code}: ${stderr}`)));
  });
  return {
    child,
    /** What the gateway has logged so far, and the checkout that it started. */
    lines: lines as readonly LogLine[],
    url: ready.http_url,
    grpcUrl: `http://${ready.grpc_address}`,
    /** Waits for a text on standard error. Returns all of it. */
    async printed(text: string): Promise<string> {
      await vi.waitUntil(() => stderr.includes(text), waitLimitMs);
      return stderr;
    },
    async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
      child.kill(signal);
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

/** Starts a gateway on a migrated database. */
export function startGateway(databaseUrl: string, variables: Readonly<Record<string, string>> = {}) {
  return startProcess({ DATABASE_URL: databaseUrl, MIGRATE: 'off', ...variables });
}

/** Like {@link startGateway}, but a busy machine does not exceed the gateway's time limits. */
export function startPatientGateway(databaseUrl: string) {
  return startProcess({ DATABASE_URL: databaseUrl }, ['apps/gateway/test/helpers/patient-gateway.ts']);
}
