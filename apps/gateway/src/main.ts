import { parseCheckoutTemplate, pathPrefixOf } from '@order-gateway/domain/links';
import { inspectServer } from '@order-gateway/postgres/connections';
import { openDatabase, unusable } from '@order-gateway/postgres/open-database';
import { createLogger, flushLogger, type Logger, standardOutput } from '@order-gateway/runtime/logger';
import { announceWait, onStopSignal, run, UsageError } from '@order-gateway/runtime/process';
import { findSecretsKeys } from '@order-gateway/runtime/secrets-keys';
import { isUnderSystemd, notifySystemd } from '@order-gateway/runtime/systemd';
import { type Config, readConfig, similarVariables, startUsage } from './config.ts';
import { configWarnings } from './config-warnings.ts';
import { createAdminServer } from './http/admin-server.ts';
import { drainDelayMs as defaultDrainDelayMs } from './limits.ts';
import {
  createDemoConsoleLink,
  createDemoOrder,
  demoBanner,
  findOrCreateDemoMerchant,
} from './pages/demo/demo-merchant.ts';
import { addressOf, freePort, listenOn, requireFreePorts } from './runtime/network/listen.ts';
import { startCheckoutProcess } from './runtime/start/checkout-process.ts';
import { watchPackageManager } from './runtime/start/package-manager.ts';
import { createMetrics } from './runtime/telemetry/metrics.ts';
import { commit, version } from './runtime/telemetry/version.ts';
import { createWorkers, type Workers } from './workers/workers.ts';

// Every start passes three options to Node.js, which reads them before it loads this file. `--v8-pool-size=0` gives
// full garbage collections one helper thread fewer than there are cores, so that they don't occupy all cores: on two
// cores at 7,000 gRPC orders per second, the p99 fell from between 22 and 43 ms to between 15 and 21 ms. Without
// `--no-allocation-site-pretenuring`, one start in four used a quarter more CPU per order, because V8 allocated an
// object of each request in the old generation. `--max-old-space-size` has the value that Node.js chooses where a
// process may use 1 GiB. Without a limit, V8 kept the metadata of ended HTTP/2 calls, which is outside its heap: a
// flood of 2,800 calls per second, of 15 KB each, filled 1.2 GiB in 14 s instead of 730 MiB.
await run(async () => {
  const [argument] = process.argv.slice(2);
  if (argument === '--help' || argument === '-h') return void process.stdout.write(startUsage);
  if (argument === '--version' || argument === '-V') return void process.stdout.write(`${version}\n`);
  if (argument !== undefined) throw new UsageError(`Unknown argument ${argument}. Use --help.`);
  const config = readConfig(process.env);
  const output = standardOutput();
  const logger = createLogger(output, config.logLevel);
  for (const similar of similarVariables(process.env)) logger.warn(similar, 'unknown environment variable ignored');
  const drainDelayMs = config.drainDelayMs ?? (process.stdin.isTTY ? 0 : defaultDrainDelayMs);
  const workers = config.workers === 1 ? undefined : createWorkers(config.workers, logger, output);
  const stopping = new AbortController();
  const opening = startAll({ ...config, drainDelayMs }, logger, workers, stopping.signal).catch(async (error) => {
    if (error === stopping.signal.reason) return undefined;
    // The warnings may explain the failure.
    await flushLogger(logger);
    throw error;
  });
  // Waits for the current step of the start before undoing it, so that nothing it started is left running.
  const stop = async () => {
    stopping.abort();
    logger.info('stopping');
    const notified = notifySystemd('STOPPING=1', logger);
    const opened = await opening;
    await Promise.all([opened?.gateway.close(), opened?.stopCheckout?.()]);
    await Promise.all([opened?.admin.close(), opened?.database.close(), notified]);
    await flushLogger(logger);
  };
  const reload = () => void opening.then((opened) => opened?.gateway.reloadTls());
  // Under systemd, SIGHUP requests a reload, which must not stop a gateway without TLS.
  const stopOnce = onStopSignal(stop, {
    delayMs: drainDelayMs,
    onHangUp: config.tls || isUnderSystemd ? reload : undefined,
  });
  watchPackageManager(() => {
    logger.info('the package manager that started the gateway has ended');
    stopOnce();
  });
  const opened = await opening;
  if (opened === undefined || stopping.signal.aborted) return;
  const { database, gateway, adminPort, demoMerchant, stopCheckout } = opened;
  logger.info(
    {
      version,
      commit,
      http_url: `${gateway.scheme}://${gateway.host}:${gateway.httpPort}`,
      grpc_address: `${gateway.host}:${gateway.grpcPort}`,
      metrics_url: `http://${gateway.host}:${adminPort}/metrics`,
      base_url: gateway.baseUrl,
      workers: config.workers,
    },
    'ready',
  );
  await notifySystemd('READY=1', logger);
  if (demoMerchant === undefined) return;
  const url = `${gateway.scheme}://${gateway.host}:${gateway.httpPort}${pathPrefixOf(gateway.baseUrl)}`;
  const order = await announceWait('the demo order', createDemoOrder(url, demoMerchant, gateway.baseUrl));
  const consoleLink = config.console
    ? await createDemoConsoleLink(database.url, demoMerchant, gateway.baseUrl)
    : undefined;
  process.stderr.write(demoBanner(demoMerchant, gateway.baseUrl, order, consoleLink, stopCheckout !== undefined));
});

/**
 * Opens everything that the gateway needs, and closes it again if a part fails. Once `signal` is aborted, starts
 * nothing else, and rejects with its reason or returns what is open.
 */
async function startAll(
  config: Config & { readonly drainDelayMs: number },
  logger: Logger,
  workers: Workers | undefined,
  signal: AbortSignal,
) {
  const host = await announceWait(`the address of ${config.host}`, addressOf(config.host));
  await requireFreePorts(host, {
    HTTP_PORT: config.httpPort,
    GRPC_PORT: config.grpcPort,
    ADMIN_PORT: config.adminPort,
  });
  const database = await openDatabase(config, { logger, signal });
  const metrics = createMetrics(workers?.collect);
  const admin = createAdminServer(metrics);
  try {
    const { losesOrdersBy, withheldSettings, hasCitus, smallWorkers } = await announceWait(
      database.awaited,
      inspectServer(database.url, config.workers),
    ).catch((error) => {
      throw unusable(database.url, error);
    });
    if (losesOrdersBy.length > 0)
      logger.warn({ off: losesOrdersBy }, 'the database server can lose acknowledged orders');
    if (Object.keys(withheldSettings).length > 0)
      logger.warn({ settings: withheldSettings }, 'the pooler ignores settings: set them with ALTER ROLE');
    if (Object.keys(smallWorkers).length > 0)
      logger.warn({ workers: smallWorkers }, 'workers of Citus accept too few connections: raise max_connections');
    const secretsKeys = await findSecretsKeys(config);
    // The merchant is created before the ports are opened, because an error must not end a gateway that is ready.
    const demoMerchant =
      database.embedded && secretsKeys !== undefined
        ? await announceWait(
            'the demo merchant',
            findOrCreateDemoMerchant({ url: database.url, dataDir: config.dataDir, secretsKeys }),
          )
        : undefined;
    if (config.operatorConsole && secretsKeys !== undefined) {
      const databaseUrl = config.operatorDatabaseUrl ?? database.url;
      const { openOperatorView } = await import('./pages/console/operator/operator-view.ts');
      admin.add(openOperatorView({ databaseUrl, secretsKeys, metrics, logger }));
    }
    signal.throwIfAborted();
    const adminPort = await listenOn('ADMIN_PORT', host, config.adminPort, admin);
    const checkoutPort =
      demoMerchant && config.checkoutPort !== 'off' && !config.checkoutTemplate && !config.tls
        ? await freePort('CHECKOUT_PORT', host, config.checkoutPort)
        : undefined;
    const gatewayConfig = {
      ...config,
      host,
      secretsKeys,
      databaseUrl: database.url,
      hasCitus,
      demo: demoMerchant,
      ...(checkoutPort !== undefined && {
        checkoutMethod: 'post' as const,
        checkoutTemplate: parseCheckoutTemplate(`http://localhost:${checkoutPort}/pay/{order_token}`),
      }),
    };
    // Only processes that serve requests load gateway.ts. With workers, this process serves none and saves 28 MiB.
    const opening = workers
      ? workers.open(gatewayConfig)
      : import('./gateway.ts').then(({ openGateway }) => openGateway(gatewayConfig, logger, metrics));
    const gateway = await announceWait(workers ? 'the workers' : 'the ports of the gateway', opening);
    for (const [fields, message] of configWarnings({ ...config, host, secretsKeys, baseUrl: gateway.baseUrl }))
      logger.warn(fields, message);
    const stopCheckout =
      checkoutPort === undefined || signal.aborted
        ? undefined
        : await announceWait(
            'the checkout',
            startCheckoutProcess(
              {
                databaseUrl: database.url,
                dataDir: config.dataDir,
                port: checkoutPort,
                gatewayUrl: gateway.baseUrl,
                grpcUrl: `http://${gateway.host}:${gateway.grpcPort}`,
              },
              { logger, signal },
            ),
          );
    return { database, demoMerchant, admin, adminPort, gateway, stopCheckout };
  } catch (error) {
    await Promise.all([admin.close(), database.close()]);
    throw error;
  }
}
