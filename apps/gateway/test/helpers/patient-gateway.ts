import { queueLimits } from '@order-gateway/postgres/queue-limits';
import { testPatience } from '@order-gateway/postgres/testing/patience';
import { createLogger, standardOutput } from '@order-gateway/runtime/logger';
import { onStopSignal } from '@order-gateway/runtime/process';
import { readConfig } from '../../src/config.ts';
import { openGateway } from '../../src/gateway.ts';
import { unauthenticatedLimits } from '../../src/limits.ts';
import { createMetrics } from '../../src/runtime/telemetry/metrics.ts';

// Runs a gateway on DATABASE_URL, whose time limits a busy machine does not exceed. The tests of other apps start it as
// a process, because apps do not import each other.
const config = readConfig(process.env);
const logger = createLogger(standardOutput(), config.logLevel);
const gateway = await openGateway(
  { ...config, host: '127.0.0.1', databaseUrl: config.databaseUrl ?? '', drainDelayMs: 0, secretsKeys: undefined },
  logger,
  createMetrics(),
  { unauthenticated: unauthenticatedLimits, orders: queueLimits.orders, patience: testPatience },
);
onStopSignal(gateway.close);
const [http_url, grpc_address] = [`http://127.0.0.1:${gateway.httpPort}`, `127.0.0.1:${gateway.grpcPort}`];
logger.info({ http_url, grpc_address }, 'ready');
