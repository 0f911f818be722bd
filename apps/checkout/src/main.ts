import { openDatabase } from '@order-gateway/postgres/open-database';
import { createLogger, flushLogger, type Logger, standardOutput } from '@order-gateway/runtime/logger';
import { onStopSignal, run, UsageError } from '@order-gateway/runtime/process';
import { findSecretsKeys } from '@order-gateway/runtime/secrets-keys';
import { notifySystemd } from '@order-gateway/runtime/systemd';
import { startTracing } from '@order-gateway/runtime/tracing';
import manifest from '../package.json' with { type: 'json' };
import { openCheckout } from './checkout.ts';
import { type Config, findCredentials, readConfig, startUsage } from './config.ts';
import { checkoutMigrations } from './store/migrate.ts';
import { traceMembers } from './tracing.ts';

await run(async () => {
  const [argument] = process.argv.slice(2);
  if (argument === '--help' || argument === '-h') return void process.stdout.write(startUsage);
  if (argument === '--version' || argument === '-V') return void process.stdout.write(`${manifest.version}\n`);
  if (argument !== undefined) throw new UsageError(`Unknown argument ${argument}. Use --help.`);
  const config = readConfig(process.env);
  const logger = createLogger(standardOutput(), config.logLevel, traceMembers);
  const { version } = manifest;
  const tracing =
    config.tracesSampler && startTracing(config.tracesSampler, { name: 'order-gateway-checkout', version });
  const opening = openAll(config, logger);
  // Waits for the start to complete before undoing it, so that nothing it started is left running.
  const stop = onStopSignal(async () => {
    const notified = notifySystemd('STOPPING=1', logger);
    const { database, checkout } = await opening;
    await checkout.close();
    await Promise.all([database.close(), tracing?.close(), notified]);
    await flushLogger(logger);
  });
  // A gateway that started this process has a channel to it, which closes when the gateway ends or stops.
  if (process.send && !process.connected) stop();
  process.once('disconnect', stop);
  const { checkout } = await opening;
  logger.info({ version, base_url: checkout.baseUrl, port: checkout.port }, 'checkout ready');
  await notifySystemd('READY=1', logger);
});

async function openAll(config: Config, logger: Logger) {
  const credentials = await findCredentials(config);
  const secretsKeys = await findSecretsKeys(config);
  const database = await openDatabase(config, { migrations: checkoutMigrations });
  const checkout = await openCheckout({ ...config, credentials, secretsKeys, databaseUrl: database.url }, logger);
  return { database, checkout };
}
