import { createLogger, flushLogger, standardOutput } from '@order-gateway/runtime/logger';
import { onStopSignal, run, UsageError } from '@order-gateway/runtime/process';
import { findSecretsKeys } from '@order-gateway/runtime/secrets-keys';
import { notifySystemd } from '@order-gateway/runtime/systemd';
import { startTracing } from '@order-gateway/runtime/tracing';
import manifest from '../package.json' with { type: 'json' };
import { openCheckout } from './checkout.ts';
import { findCredentials, readConfig, startUsage } from './config.ts';
import { openDatabase } from './store/database.ts';
import { traceMembers } from './tracing.ts';

await run(async () => {
  const [argument] = process.argv.slice(2);
  if (argument === '--help' || argument === '-h') return void process.stdout.write(startUsage);
  if (argument === '--version' || argument === '-V') return void process.stdout.write(`${manifest.version}\n`);
  if (argument !== undefined) throw new UsageError(`Unknown argument ${argument}. Use --help.`);
  const config = readConfig(process.env);
  const credentials = await findCredentials(config);
  const logger = createLogger(standardOutput(), config.logLevel, traceMembers);
  const { version } = manifest;
  const tracing =
    config.tracesSampler && startTracing(config.tracesSampler, { name: 'order-gateway-checkout', version });
  const secretsKeys = await findSecretsKeys(config);
  const database = await openDatabase(config);
  const checkout = await openCheckout({ ...config, credentials, secretsKeys, databaseUrl: database.url }, logger);
  const stop = onStopSignal(async () => {
    const notified = notifySystemd('STOPPING=1', logger);
    await checkout.close();
    await Promise.all([database.close(), tracing?.close(), notified]);
    await flushLogger(logger);
  });
  // A gateway that started this process has ended.
  if (process.connected) process.once('disconnect', stop);
  logger.info({ version, base_url: checkout.baseUrl, port: checkout.port }, 'checkout ready');
  await notifySystemd('READY=1', logger);
});
