import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Credentials } from '@gateway/fixtures/fill-call';
import { gatewayEnvironment, gatewayFolder, startGatewayProcess } from './gateway-process.ts';
import type { GivenGateway } from './replay-options.ts';

/** A gateway that was started for one run. */
export interface OwnGateway extends GivenGateway {
  readonly baseUrl: string;
  /** Stops the gateway and removes its data. The second call waits for the first one's end. */
  stop(): Promise<void>;
}

const merchantTimeoutMs = 30_000;

/**
 * Starts a gateway on free ports, with a data folder of its own and nothing from our environment that could lead it to another
 * database, and makes the merchants. Nothing is left behind when this fails, or when `signal` aborts it.
 */
export async function startOwnGateway(signal: AbortSignal): Promise<OwnGateway> {
  const dataDir = await mkdtemp(join(tmpdir(), 'order-gateway-replay-'));
  const removeData = () => rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  const gateway = await startGatewayProcess({ dataDir }, signal).catch(async (error: unknown) => {
    await removeData();
    throw error;
  });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= gateway.stop().finally(removeData);
    return stopping;
  };
  try {
    const env = gatewayEnvironment(dataDir);
    const command = (...words: string[]) => runMerchantCommand(words, env, signal);
    const merchants = {
      first: await createMerchant('Fixture replay', command),
      second: await createMerchant('Fixture replay, another merchant', command),
      strict: await createMerchant('Fixture replay, checksums required', command),
    };
    await command('checksum', 'required', merchants.strict.clientId);
    const { httpUrl, grpcAddress, baseUrl } = gateway;
    return { httpUrl, grpcAddress, baseUrl, merchants, stop };
  } catch (error) {
    await stop();
    throw error;
  }
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
  const args = [join(gatewayFolder, 'cli/merchant.ts'), ...words];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, signal, timeout: merchantTimeoutMs });
  return stdout;
}
