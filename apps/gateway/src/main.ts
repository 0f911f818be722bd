import { pathPrefixOf } from '@gateway/domain/payment-link';
import { createDemoOrder, demoBanner, findOrCreateDemoMerchant } from './cli/demo-merchant.ts';
import { type Config, readConfig, startUsage } from './config.ts';
import { openDatabase } from './database.ts';
import { openGateway } from './gateway.ts';
import { createLog, type Log } from './log.ts';
import { onStopSignal, run, StartError } from './run.ts';

await run(async () => {
  const [argument] = process.argv.slice(2);
  if (argument === '--help' || argument === '-h') return void process.stdout.write(startUsage);
  if (argument !== undefined) throw new StartError(`There is no argument ${argument}. See pnpm start --help.`);
  const config = readConfig(process.env);
  const log = createLog();
  const opening = open(config, log);
  let isStopping = false;
  // From here on, as what has started by then must not be left behind: a start is finished before it is undone.
  onStopSignal(async () => {
    isStopping = true;
    log.info('stopping');
    const { database, gateway } = await opening;
    await gateway.close();
    await database.close();
    await log.flush();
  });
  const { gateway, demoMerchant } = await opening;
  if (isStopping) return;
  log.info('ready', {
    http_url: `http://${gateway.host}:${gateway.httpPort}`,
    grpc_address: `${gateway.host}:${gateway.grpcPort}`,
    base_url: gateway.baseUrl,
  });
  if (demoMerchant === undefined) return;
  const url = `http://${gateway.host}:${gateway.httpPort}${pathPrefixOf(gateway.baseUrl)}`;
  const paymentLink = await createDemoOrder(url, demoMerchant);
  process.stderr.write(demoBanner(demoMerchant, gateway.baseUrl, paymentLink));
});

async function open(config: Config, log: Log) {
  const database = await openDatabase(config, log);
  try {
    // Before the doors open: from "ready" on nothing but a signal ends the process.
    const demoMerchant = database.embedded ? await findOrCreateDemoMerchant(database.url, config.dataDir) : undefined;
    const gateway = await openGateway({ ...config, databaseUrl: database.url }, log);
    return { database, demoMerchant, gateway };
  } catch (error) {
    await database.close();
    throw error;
  }
}
