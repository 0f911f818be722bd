import { pathPrefixOf } from '@gateway/domain/payment-link';
import { createDemoOrder, demoBanner, findOrCreateDemoMerchant } from './cli/demo-merchant.ts';
import { type Config, readConfig, startUsage } from './config.ts';
import { openDatabase } from './database.ts';
import { openGateway } from './gateway.ts';
import { drainDelayMs as defaultDrainDelayMs } from './limits.ts';
import { createLogger, flushLogger, type Logger } from './logger.ts';
import { onStopSignal, run, StartError } from './process.ts';
import { findSecretsKeys } from './webhooks/secrets-keys.ts';

await run(async () => {
  const [argument] = process.argv.slice(2);
  if (argument === '--help' || argument === '-h') return void process.stdout.write(startUsage);
  if (argument !== undefined) throw new StartError(`There is no argument ${argument}. See pnpm start --help.`);
  const config = readConfig(process.env);
  const logger = createLogger();
  logger.level = config.logLevel;
  const drainDelayMs = config.drainDelayMs ?? (process.stdin.isTTY ? 0 : defaultDrainDelayMs);
  const opening = open({ ...config, drainDelayMs }, logger);
  let isStopping = false;
  // A start is finished before it is undone, so that nothing which it started stays behind.
  const stop = async () => {
    isStopping = true;
    logger.info('stopping');
    const { database, gateway } = await opening;
    await gateway.close();
    await database.close();
    await flushLogger(logger);
  };
  const reload = () => void opening.then(({ gateway }) => gateway.reloadTls());
  onStopSignal(stop, { delayMs: drainDelayMs, onHangUp: config.tls && reload });
  const { gateway, demoMerchant } = await opening;
  if (isStopping) return;
  logger.info(
    {
      http_url: `${gateway.scheme}://${gateway.host}:${gateway.httpPort}`,
      grpc_address: `${gateway.host}:${gateway.grpcPort}`,
      metrics_url: `http://${gateway.host}:${gateway.adminPort}/metrics`,
      base_url: gateway.baseUrl,
    },
    'ready',
  );
  if (demoMerchant === undefined) return;
  const url = `${gateway.scheme}://${gateway.host}:${gateway.httpPort}${pathPrefixOf(gateway.baseUrl)}`;
  const paymentLink = await createDemoOrder(url, demoMerchant, gateway.baseUrl);
  process.stderr.write(demoBanner(demoMerchant, gateway.baseUrl, paymentLink));
});

async function open(config: Config & { readonly drainDelayMs: number }, logger: Logger) {
  const database = await openDatabase(config, logger);
  try {
    const secretsKeys = await findSecretsKeys(config);
    // Before the ports open: after "ready" nothing but a signal ends the process.
    const demoMerchant =
      database.embedded && secretsKeys !== undefined
        ? await findOrCreateDemoMerchant({ url: database.url, dataDir: config.dataDir, secretsKeys })
        : undefined;
    const gateway = await openGateway({ ...config, secretsKeys, databaseUrl: database.url }, logger);
    return { database, demoMerchant, gateway };
  } catch (error) {
    await database.close();
    throw error;
  }
}
