import { type ChildProcess, type ChildProcessByStdio, execFile, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

/** Also the limit for a message's answer. */
const startLimitMs = 60_000;
const stopLimitMs = 10_000;

/** A program that serves requests. */
interface StartedServer {
  readonly pid: number;
  /** Its JSON line with `"msg":"ready"`. */
  readonly ready: Readonly<Record<string, unknown>>;
  /** Resolves to the bytes that it has allocated on V8's heap, if it loaded `allocation.ts`. */
  readonly allocatedBytes: () => Promise<number>;
}

/**
 * Starts a Node.js program. `cleanup` stops the program. Throws with the end of its standard error if it exits first or
 * is not ready within a minute.
 */
export async function startServer(
  cleanup: AsyncDisposableStack,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<StartedServer> {
  const stdio: StdioOptions = ['ignore', 'pipe', 'pipe', 'ipc'];
  const child = spawn(process.execPath, args, { env, stdio }) as ChildProcessByStdio<null, Readable, Readable>;
  cleanup.defer(() => stop(child));
  const allocatedBytes = async () => {
    child.send('allocated bytes');
    const [bytes] = await once(child, 'message', { signal: AbortSignal.timeout(startLimitMs) });
    return Number(bytes);
  };
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors = `${errors}${chunk}`.slice(-4_000);
  });
  const limit = AbortSignal.timeout(startLimitMs);
  try {
    for await (const line of createInterface({ input: child.stdout, signal: limit })) {
      const message = line.startsWith('{') ? JSON.parse(line) : {};
      if (message.msg === 'ready') return { pid: child.pid ?? 0, ready: message, allocatedBytes };
    }
  } finally {
    // Later lines are dropped without parsing, which would take CPU from the measurement.
    child.stdout.resume();
  }
  throw new Error(`${args.at(-1)} did not become ready: ${errors}`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await Promise.race([exited, sleep(stopLimitMs, undefined, { ref: false })]);
  child.kill('SIGKILL');
  await exited;
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** Reports to {@link startServer} that this process serves these ports. */
export function reportReady({ http, grpc }: { readonly http?: number; readonly grpc?: number }): void {
  const urls = {
    ...(http && { http_url: `http://127.0.0.1:${http}` }),
    ...(grpc && { grpc_address: `127.0.0.1:${grpc}` }),
  };
  process.stdout.write(`${JSON.stringify({ msg: 'ready', ...urls })}\n`);
}

/** Runs a program until it exits and returns its standard output. Throws if it fails or times out. */
export async function run(
  file: string,
  args: readonly string[],
  { timeoutSeconds, ...options }: { env?: NodeJS.ProcessEnv; timeoutSeconds: number; signal?: AbortSignal },
): Promise<string> {
  const { stdout } = await promisify(execFile)(file, args, { ...options, timeout: timeoutSeconds * 1_000 });
  return stdout;
}

/** Whether a program is in the PATH. */
export async function isInstalled(program: string): Promise<boolean> {
  return run('sh', ['-c', `command -v ${program}`], { timeoutSeconds: 10 }).then(
    () => true,
    () => false,
  );
}
