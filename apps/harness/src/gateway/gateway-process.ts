import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
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
  /** Stops it in an orderly way; the second call waits for the first. */
  stop(): Promise<void>;
  /** Ends it as a crash does. */
  kill(): Promise<void>;
}

const repository = fileURLToPath(new URL('../../../..', import.meta.url));
/** The program and the Node.js options of `pnpm start`. */
const startArguments = manifest.scripts.start.split(' ').slice(1);

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
  { databaseUrl, httpPort = 0, grpcPort = 0 }: { databaseUrl: string; httpPort?: number; grpcPort?: number },
  signal: AbortSignal,
): Promise<GatewayProcess> {
  // Nothing else of our environment may configure it.
  const inherited = ['PATH', 'HOME', 'TMPDIR'].map((name) => [name, process.env[name]]);
  const ports = { HTTP_PORT: String(httpPort), GRPC_PORT: String(grpcPort) };
  const child = spawn(process.execPath, startArguments, {
    cwd: repository,
    env: { ...Object.fromEntries(inherited), ...ports, DATABASE_URL: databaseUrl },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own, so that Ctrl-C reaches us alone, and we stop it in order.
    detached: true,
  });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= end(child, 'SIGTERM');
    return stopping;
  };
  try {
    return { ...(await readAddresses(child, signal)), stop, kill: () => end(child, 'SIGKILL') };
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
    // The rest is discarded unread: parsing a line for every call would cost this process, which sends load, too much.
    for (const reader of readers) reader.close();
    for (const output of outputs) output.resume();
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
