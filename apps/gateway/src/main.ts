import { setFlagsFromString } from 'node:v8';
import { readConfig } from './config.ts';
import { openDatabase } from './database.ts';
import { demoBanner, keepDemoMerchant } from './demo-merchant.ts';
import { openGateway } from './gateway.ts';
import { createLog } from './log.ts';
import { onStopSignal, run } from './run.ts';

// A full collection of garbage when the heap has doubled, in place of grown to five times: stops of 12 to 35 ms, not of 40 to
// 58 and more (decision 014).
setFlagsFromString('--heap-growing-percent=100');

await run(async () => {
  const config = readConfig(process.env);
  const log = createLog();
  const database = await openDatabase(config);
  const start = async () => {
    // Before the doors open: from "ready" on nothing but a signal ends the process.
    const demoMerchant = database.embedded ? await keepDemoMerchant(database.url, config.dataDir) : undefined;
    return { demoMerchant, gateway: await openGateway({ ...config, databaseUrl: database.url }, log) };
  };
  const { demoMerchant, gateway } = await start().catch(async (error: unknown) => {
    await database.close();
    throw error;
  });
  onStopSignal(async () => {
    log.info('stopping');
    await gateway.close();
    await database.close();
    await log.flush();
  });
  log.info('ready', {
    http_url: `http://${config.host}:${gateway.httpPort}`,
    grpc_address: `${config.host}:${gateway.grpcPort}`,
    base_url: gateway.baseUrl,
  });
  if (demoMerchant !== undefined) process.stderr.write(demoBanner(demoMerchant, gateway.baseUrl));
});
