import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import manifest from '../../../../package.json' with { type: 'json' };

/** Where a gateway listens. */
export interface GatewayAddresses {
  /** Without a trailing slash. */
  readonly httpUrl: string;
  /** `host:port`. */
  readonly grpcAddress: string;
}

/** A running gateway that this process started. */
export interface GatewayProcess extends GatewayAddresses {
  /** What its links begin with. */
  readonly baseUrl: string;
  readonly pid: number | undefined;
  /** Stops it in an orderly way; the second call waits for the first. */
  stop(): Promise<void>;
  /** Ends it as a crash does. */
  kill(): Promise<void>;
  /** Rejects with the end of its output when it exits although it was neither stopped nor killed from here. */
  readonly exited: Promise<never>;
}

const repository = fileURLToPath(new URL('../../../..', import.meta.url));

/** What a gateway of ours is configured with. */
export interface GatewaySettings {
  readonly databaseUrl: string;
  /** Whether it finds the schema in the database and may not change it. */
  readonly isMigrated?: boolean | undefined;
  /** 32 bytes in base64. */
  readonly secretsKey: string;
  /** More variables, which replace those that the harness sets. */
  readonly variables?: Readonly<Record<string, string>>;
}

/** Nothing else of our environment may configure it. Webhooks go to a receiver of this machine. */
function environmentOf({ databaseUrl, isMigrated, secretsKey, variables }: GatewaySettings): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR } = process.env;
  const own = { DATABASE_URL: databaseUrl, SECRETS_KEY: secretsKey, WEBHOOK_ALLOW_PRIVATE: '1', DRAIN_DELAY_MS: '0' };
  return { PATH, HOME, TMPDIR, ...own, MIGRATE: isMigrated ? 'off' : 'on', ...variables };
}

/** The program and the Node.js options of a script. */
function argumentsOf(script: 'start' | 'merchant'): string[] {
  return manifest.scripts[script].split(' ').slice(1);
}

/** Sets a merchant's endpoint as `pnpm merchant webhook set` does. Returns its signing secret. */
export async function setWebhook(settings: GatewaySettings, clientId: string, url: string): Promise<string> {
  const args = [...argumentsOf('merchant'), 'webhook', 'set', clientId, url, '--json'];
  const options = { cwd: repository, env: environmentOf(settings) };
  const { stdout } = await promisify(execFile)(process.execPath, args, options);
  return JSON.parse(stdout).signing_secret;
}

/** A start with migrations takes a second here and several on a busy machine. */
const readyTimeoutMs = 60_000;
/** The gateway lets calls finish; after this it is killed. */
const stopTimeoutMs = 20_000;
/** Of the output of a gateway that does not start, the end is shown. */
const tailLinesMax = 20;

/**
 * Starts a gateway on a database and waits until it is ready. Port 0 takes a free one. Nothing is left running when this fails
 * or `signal` aborts it.
 */
export async function startGatewayProcess(
  { httpPort = 0, grpcPort = 0, ...settings }: GatewaySettings & { httpPort?: number; grpcPort?: number },
  signal: AbortSignal,
): Promise<GatewayProcess> {
  const ports = { HTTP_PORT: String(httpPort), GRPC_PORT: String(grpcPort), ADMIN_PORT: '0' };
  const child = spawn(process.execPath, argumentsOf('start'), {
    cwd: repository,
    env: { ...environmentOf(settings), ...ports },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own, so that Ctrl-C reaches us alone, and we stop it in order.
    detached: true,
  });
  let stopping: Promise<void> | undefined;
  const endOnce = (by: 'SIGTERM' | 'SIGKILL') => {
    stopping ??= end(child, by);
    return stopping;
  };
  const stop = () => endOnce('SIGTERM');
  const exit = Promise.withResolvers<never>();
  exit.promise.catch(() => {});
  let latest = '';
  child.once('exit', (code, by) => {
    if (stopping === undefined) exit.reject(new Error(`the gateway ended with ${by ?? `code ${code}`}: ${latest}`));
  });
  try {
    const addresses = await readAddresses(child, signal);
    // Nothing is parsed, as a line for every call would cost this process, which sends load, too much.
    for (const output of [child.stdout, child.stderr]) {
      output.on('data', (chunk) => {
        latest = String(chunk);
      });
      // The reader that is closed by now has paused it.
      output.resume();
    }
    return { ...addresses, pid: child.pid, stop, kill: () => endOnce('SIGKILL'), exited: exit.promise };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Waits for the log line that names the ports. */
async function readAddresses(child: ChildProcess, signal: AbortSignal) {
  const tail: string[] = [];
  const ready = Promise.withResolvers<Pick<GatewayProcess, 'httpUrl' | 'grpcAddress' | 'baseUrl'>>();
  const fail = (reason: string) => ready.reject(new Error([reason, ...tail].join('\n')));
  const outputs = [child.stdout, child.stderr].filter((output) => output !== null);
  const readers = outputs.map((input) =>
    createInterface({ input }).on('line', (line) => {
      tail.push(line);
      if (tail.length > tailLinesMax) tail.shift();
      if (!line.startsWith('{') || !line.includes('"msg":"ready"')) return;
      const { http_url: httpUrl, grpc_address: grpcAddress, base_url: baseUrl } = JSON.parse(line);
      ready.resolve({ httpUrl, grpcAddress, baseUrl });
    }),
  );
  child.once('error', (error) => fail(`the gateway did not start: ${error.message}`));
  child.once('close', (code) => fail(`the gateway ended with code ${code} before it was ready`));
  const timeout = setTimeout(() => fail(`the gateway was not ready within ${readyTimeoutMs} ms`), readyTimeoutMs);
  const abort = () => fail('stopped before the gateway was ready');
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    return await ready.promise;
  } finally {
    clearTimeout(timeout);
    signal.removeEventListener('abort', abort);
    for (const reader of readers) reader.close();
  }
}

async function end(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  const timeout = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
  await ended;
  clearTimeout(timeout);
}
