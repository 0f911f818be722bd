import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Credentials } from './fixtures/fill-call.ts';
import type { GivenGateway } from './replay-options.ts';

/** A gateway that was started for one run. */
export interface OwnGateway extends GivenGateway {
  /** Stops the gateway and removes its data. The second call waits for the first one's end. */
  stop(): Promise<void>;
}

const gatewayFolder = fileURLToPath(new URL('../../gateway/src', import.meta.url));

/** The first start makes a database cluster, which takes a second here and several on a busy machine. */
const readyTimeoutMs = 60_000;
const merchantTimeoutMs = 30_000;
/** The gateway lets calls finish and shuts its database down; after this it is killed. */
const stopTimeoutMs = 20_000;
/** Of what the gateway printed before it failed, the end is shown. */
const tailLinesMax = 20;

/**
 * Starts a gateway on free ports, with a data folder of its own and nothing from our environment that could lead it to another
 * database, and makes the merchants. Nothing is left behind when this fails, or when `signal` aborts it.
 */
export async function startOwnGateway(signal: AbortSignal): Promise<OwnGateway> {
  const dataDir = await mkdtemp(join(tmpdir(), 'order-gateway-replay-'));
  const env = { ...inherited(), DATA_DIR: dataDir, HTTP_PORT: '0', GRPC_PORT: '0' };
  const child = spawn(process.execPath, [join(gatewayFolder, 'main.ts')], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, so that Ctrl-C reaches us alone, and we stop it in order.
    detached: true,
  });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= stopGateway(child).finally(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
    return stopping;
  };
  try {
    const addresses = await readAddresses(child, signal);
    const command = (...words: string[]) => runMerchantCommand(words, env, signal);
    const merchants = {
      first: await createMerchant('Fixture replay', command),
      second: await createMerchant('Fixture replay, another merchant', command),
      strict: await createMerchant('Fixture replay, checksums required', command),
    };
    await command('checksum', 'required', merchants.strict.clientId);
    return { ...addresses, merchants, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function inherited(): NodeJS.ProcessEnv {
  const names = ['PATH', 'HOME', 'TMPDIR', 'TEMP', 'LANG', 'SystemRoot'];
  return Object.fromEntries(names.map((name) => [name, process.env[name]]));
}

/** Waits for the log line that tells the ports. The output is read to its end, so that the gateway never waits for us. */
async function readAddresses(child: ChildProcess, signal: AbortSignal): Promise<Omit<GivenGateway, 'merchants'>> {
  const tail: string[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<Omit<GivenGateway, 'merchants'>>();
  const fail = (told: string) => reject(new Error([told, ...tail].join('\n')));
  for (const output of [child.stdout, child.stderr]) {
    if (output === null) continue;
    createInterface({ input: output }).on('line', (line) => {
      tail.push(line);
      if (tail.length > tailLinesMax) tail.shift();
      const addresses = addressesIn(line);
      if (addresses !== undefined) resolve(addresses);
    });
  }
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
  }
}

function addressesIn(line: string): Omit<GivenGateway, 'merchants'> | undefined {
  // Whatever else is printed, such as the warning of a library, is no log line.
  if (!line.startsWith('{') || !line.endsWith('}') || !line.includes('"msg":"ready"')) return undefined;
  const { http_url: httpUrl, grpc_address: grpcAddress } = JSON.parse(line);
  return { httpUrl, grpcAddress };
}

async function createMerchant(name: string, command: (...words: string[]) => Promise<string>): Promise<Credentials> {
  const { client_id: clientId, client_secret: clientSecret } = JSON.parse(
    await command('create', '--name', name, '--json'),
  );
  return { clientId, clientSecret };
}

/** Runs the gateway's merchant command as an operator does, and gives what it printed. */
async function runMerchantCommand(
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<string> {
  const args = [join(gatewayFolder, 'merchant.ts'), ...words];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, signal, timeout: merchantTimeoutMs });
  return stdout;
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
