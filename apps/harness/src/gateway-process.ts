import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import manifest from '../../../package.json' with { type: 'json' };

/** Where a gateway listens. */
export interface GatewayAddresses {
  /** Without a trailing slash. */
  readonly httpUrl: string;
  /** `host:port`. */
  readonly grpcAddress: string;
}

/** A gateway that this process started. */
export interface GatewayProcess extends ReadyLine {
  /** Stops it in an orderly way. The second call waits for the first one's end. */
  stop(): Promise<void>;
  /** Ends it as a crash does, and waits until it is gone. Its PostgreSQL runs on. */
  kill(): Promise<void>;
}

/** What a gateway says when it is ready. */
interface ReadyLine extends GatewayAddresses {
  /** What its links begin with. */
  readonly baseUrl: string;
}

/** The gateway's programs. */
export const gatewayFolder = fileURLToPath(new URL('../../gateway/src', import.meta.url));

/** The options that `pnpm start` gives to Node.js for the gateway. */
const nodeOptions = manifest.scripts.start.split(' ').slice(1, -1);

/** The first start makes a database cluster, which takes a second here and several on a busy machine. */
const readyTimeoutMs = 60_000;
/** The gateway lets calls finish and shuts its database down; after this it is killed. */
const stopTimeoutMs = 20_000;
/** Of what the gateway printed before it failed, the end is shown. */
const tailLinesMax = 20;

/**
 * Starts a gateway on the embedded PostgreSQL of a folder, and waits until it is ready. Nothing of our environment could lead it
 * to another database. Port 0, the usual, takes a free one. Nothing runs on when this fails, or when `signal` aborts it.
 */
export async function startGatewayProcess(
  { dataDir, httpPort = 0, grpcPort = 0 }: { dataDir: string; httpPort?: number; grpcPort?: number },
  signal: AbortSignal,
): Promise<GatewayProcess> {
  const child = spawn(process.execPath, [...nodeOptions, join(gatewayFolder, 'main.ts')], {
    env: { ...gatewayEnvironment(dataDir), HTTP_PORT: String(httpPort), GRPC_PORT: String(grpcPort) },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that Ctrl-C reaches us alone, and we stop it in order.
    detached: true,
  });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= stopGateway(child);
    return stopping;
  };
  const kill = async () => {
    const gone = once(child, 'exit');
    if (child.kill('SIGKILL')) await gone;
  };
  try {
    return { ...(await readAddresses(child, signal)), stop, kill };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The environment of the gateway's programs on a folder's PostgreSQL. */
export function gatewayEnvironment(dataDir: string): NodeJS.ProcessEnv {
  return { ...inherited(), DATA_DIR: dataDir };
}

function inherited(): NodeJS.ProcessEnv {
  const names = ['PATH', 'HOME', 'TMPDIR', 'TEMP', 'LANG', 'SystemRoot'];
  return Object.fromEntries(names.map((name) => [name, process.env[name]]));
}

/** Waits for the log line that tells the ports. The output is taken to its end, so that the gateway never waits for us. */
async function readAddresses(child: ChildProcess, signal: AbortSignal): Promise<ReadyLine> {
  const tail: string[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<ReadyLine>();
  const fail = (told: string) => reject(new Error([told, ...tail].join('\n')));
  const outputs = [child.stdout, child.stderr].filter((output) => output !== null);
  const readers = outputs.map((input) =>
    createInterface({ input }).on('line', (line) => {
      tail.push(line);
      if (tail.length > tailLinesMax) tail.shift();
      const addresses = addressesIn(line);
      if (addresses !== undefined) resolve(addresses);
    }),
  );
  child.once('error', (error) => fail(`the gateway did not start: ${error.message}`));
  child.once('close', (code) => fail(`the gateway ended with code ${code} before it was ready`));
  const tooLate = setTimeout(() => fail(`the gateway was not ready within ${readyTimeoutMs} ms`), readyTimeoutMs);
  const aborted = () => fail('stopped before the gateway was ready');
  signal.addEventListener('abort', aborted, { once: true });
  try {
    signal.throwIfAborted();
    return await promise;
  } finally {
    clearTimeout(tooLate);
    signal.removeEventListener('abort', aborted);
    // From here on it is thrown away unread: a line for every call would cost this process, which sends load, too much.
    for (const reader of readers) reader.close();
    for (const output of outputs) output.resume();
  }
}

function addressesIn(line: string): ReadyLine | undefined {
  // Whatever else is printed, such as the warning of a library, is no log line.
  if (!line.startsWith('{') || !line.endsWith('}') || !line.includes('"msg":"ready"')) return undefined;
  const { http_url: httpUrl, grpc_address: grpcAddress, base_url: baseUrl } = JSON.parse(line);
  return { httpUrl, grpcAddress, baseUrl };
}

async function stopGateway(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const patience = new AbortController();
  const tooLong = sleep(stopTimeoutMs, 'too long', { signal: patience.signal }).catch(() => undefined);
  if ((await Promise.race([ended, tooLong])) === 'too long') {
    child.kill('SIGKILL');
    await ended;
  }
  patience.abort();
}
