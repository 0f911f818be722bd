import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePorts } from '@order-gateway/dev-postgres';
import { endWithThisProcess } from '@order-gateway/dev-postgres/testing';
import { endProcess } from './end-process.ts';

/** A running gateway that this process started. */
export type GatewayProcess = Awaited<ReturnType<typeof startGatewayProcess>>;

/** The working tree that contains this file. */
export const thisTree = fileURLToPath(new URL('../../../..', import.meta.url));

export interface GatewaySettings {
  /** The working tree of another version, with its dependencies installed; {@link thisTree} by default. */
  readonly tree?: string;
  readonly databaseUrl: string;
  /** Whether the schema exists and the gateway may not change it. */
  readonly isMigrated?: boolean | undefined;
  /** 32 bytes in base64. */
  readonly secretsKey: string;
  /** Additional variables, which override those that the harness sets. */
  readonly variables?: Readonly<Record<string, string>>;
}

/**
 * Returns the environment of a gateway, which inherits only a few variables. Private addresses are allowed, because the
 * webhook receiver runs on this machine.
 */
function environmentOf({ databaseUrl, isMigrated, secretsKey, variables }: GatewaySettings): NodeJS.ProcessEnv {
  const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env;
  const fixed = { DATABASE_URL: databaseUrl, SECRETS_KEY: secretsKey, WEBHOOK_ALLOW_PRIVATE: '1', DRAIN_DELAY_MS: '0' };
  return { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, ...fixed, MIGRATE: isMigrated ? 'off' : 'on', ...variables };
}

/** Returns the arguments that a script of package.json passes to Node.js: its options and the program. */
function argumentsOf(script: 'start' | 'migrate' | AccountProgram, tree: string): string[] {
  const { scripts } = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8'));
  return scripts[script].split(' ').slice(1);
}

/** Migrates the database as `migrate` does. */
export async function migrate({ tree = thisTree, ...settings }: GatewaySettings): Promise<void> {
  const options = { cwd: tree, env: environmentOf(settings) };
  await promisify(execFile)(process.execPath, argumentsOf('migrate', tree), options);
}

/** The programs that manage accounts. */
type AccountProgram = 'merchant' | 'checkout';

/** Runs a command that manages accounts and prints JSON. Returns what it prints. */
export async function runAccountCommand(
  { tree = thisTree, ...settings }: GatewaySettings,
  [program, ...args]: readonly [AccountProgram, ...string[]],
): Promise<Record<string, string>> {
  const options = { cwd: tree, env: environmentOf(settings) };
  const { stdout } = await promisify(execFile)(process.execPath, [...argumentsOf(program, tree), ...args], options);
  return JSON.parse(stdout);
}

/** Sets a merchant's endpoint. Returns its signing secret. */
export async function setWebhook(settings: GatewaySettings, clientId: string, url: string): Promise<string> {
  const { signing_secret: secret = '' } = await runAccountCommand(settings, [
    'merchant',
    'webhook',
    'set',
    clientId,
    url,
    '--json',
  ]);
  return secret;
}

/** A start with migrations takes a second, but more than a minute on an overloaded machine. A gateway can also hang. */
const readyTimeoutMs = 300_000;
/** How many characters at the end of the output are shown when a gateway fails to start or exits unexpectedly. */
const outputShownMax = 4_000;

/**
 * Starts a gateway on a database, on free ports unless ports are given, and waits until it is ready. If the start
 * fails or `signal` aborts it, nothing keeps running.
 */
export async function startGatewayProcess(
  { ports, ...settings }: GatewaySettings & { readonly ports?: Readonly<Record<'http' | 'grpc', number>> | undefined },
  signal: AbortSignal,
) {
  // An outgoing connection could take a port that the system chose while a crashed gateway starts again.
  const [http = 0, grpc = 0] = ports ? [ports.http, ports.grpc] : await freePorts(2);
  const exit = Promise.withResolvers<never>();
  exit.promise.catch(() => {});
  let isEnding = false;
  const start = async (httpPort: number, grpcPort: number) => {
    const child = spawnGateway(settings, httpPort, grpcPort);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output = `${output}${chunk}`.slice(-outputShownMax);
      });
    }
    child.once('exit', (code, by) => {
      if (!isEnding) exit.reject(new Error(`the gateway exited with ${by ?? `code ${code}`}: ${output}`));
    });
    try {
      return { child, ready: await readReadyLine(child, signal) };
    } catch (error) {
      isEnding = true;
      await endProcess(child);
      throw new Error(`the gateway did not start: ${(error as Error).message}\n${output}`);
    }
  };
  let { child, ready } = await start(http, grpc);
  const { http_url: httpUrl, grpc_address: grpcAddress, base_url: baseUrl } = ready;
  return {
    httpUrl,
    grpcAddress,
    /** The base URL of its links. */
    baseUrl,
    /** Rejects with the end of its output when it exits unexpectedly. */
    exited: exit.promise,
    /** The id of the current process, which changes after a crash. */
    pid: () => child.pid,
    /** Stops it gracefully. A second call during the stop sends a second signal, which ends the gateway immediately. */
    stop() {
      isEnding = true;
      return endProcess(child);
    },
    /** Kills it, and starts it again on the same ports and data. */
    async crash() {
      isEnding = true;
      await endProcess(child, 'SIGKILL');
      isEnding = false;
      ({ child, ready } = await start(portOf(httpUrl), portOf(`http://${grpcAddress}`)));
    },
  };
}

function spawnGateway(settings: GatewaySettings, httpPort: number, grpcPort: number) {
  const { tree = thisTree } = settings;
  const child = spawn(process.execPath, argumentsOf('start', tree), {
    cwd: tree,
    env: { ...environmentOf(settings), HTTP_PORT: `${httpPort}`, GRPC_PORT: `${grpcPort}`, ADMIN_PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A separate process group, so that Ctrl-C reaches only this process, which then stops the gateway gracefully.
    detached: true,
  });
  endWithThisProcess(child);
  return child;
}

/** Waits for the log line that names the ports. */
async function readReadyLine(child: ReturnType<typeof spawnGateway>, signal: AbortSignal) {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(readyTimeoutMs)]);
  try {
    for await (const line of createInterface({ input: child.stdout, signal: limit })) {
      if (line.startsWith('{') && line.includes('"msg":"ready"'))
        return JSON.parse(line) as Record<'http_url' | 'grpc_address' | 'base_url', string>;
    }
    limit.throwIfAborted();
    throw new Error('it exited before it was ready');
  } finally {
    // The end of the loop pauses the stream. Later output is read without splitting it into lines, because splitting
    // would cost the load generator too much CPU time.
    child.stdout.resume();
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}
