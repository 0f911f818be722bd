import { type Profiler, Session } from 'node:inspector/promises';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { createLogger } from '@order-gateway/runtime/logger';
import { readConfig } from '../../src/config.ts';
import { openGateway } from '../../src/gateway.ts';
import { createMetrics } from '../../src/runtime/telemetry/metrics.ts';
import { grpcClient } from './grpc/rpc-clients.ts';
import { orderMessage, postOrder } from './send-order.ts';

// Prints the files that an engineer reads to follow a call: the files of the gateway and its packages in which a warm
// call executes a function, except the domain's rules. This program runs without vitest, which adds functions to every
// file that has exports.
// Usage: `DATABASE_URL=... node print-files-of-calls.ts CREDENTIALS_AS_JSON`

/** The files in which calls executed a function, by protocol. */
export interface FilesOfCalls {
  readonly json: readonly string[];
  readonly grpc: readonly string[];
}

const followedFiles = /\/(apps\/gateway\/src|packages\/(?!domain\/)[\w-]+\/src)\//;

/** Files whose code runs periodically, whether there are calls or not. */
const periodicFiles = /\/(event-watch|metrics|readiness|server-probe|sweeps|write-check)\.ts$|\/background\//;

const credentials = JSON.parse(process.argv[2] ?? '');
const config = { ...readConfig(process.env), httpPort: 0, grpcPort: 0, drainDelayMs: 0 };
const { databaseUrl = '' } = config;
const gateway = await openGateway({ ...config, databaseUrl }, createLogger({ write() {} }), createMetrics());
const url = `http://127.0.0.1:${gateway.httpPort}`;
const grpc = grpcClient(OrderService, { grpcUrl: `http://127.0.0.1:${gateway.grpcPort}` });
const headers = { 'x-client-id': credentials.clientId, 'x-client-secret': credentials.clientSecret };
const files: FilesOfCalls = {
  json: await filesOf((order_id) => postOrder({ url, credentials }, validOrderInput({ order_id }))),
  grpc: await filesOf((orderId) => grpc.createOrder(orderMessage(orderId), { headers })),
};
process.stdout.write(JSON.stringify(files));
process.exit();

/** Returns the files in which each of five warm calls executes a function. */
async function filesOf(call: (orderId: string) => Promise<unknown>): Promise<string[]> {
  for (let count = 0; count < 20; count += 1) await call(`warm-${Math.random()}`);
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  let common: ReadonlySet<string> | undefined;
  for (let count = 0; count < 5; count += 1) {
    await session.post('Profiler.takePreciseCoverage');
    await call(`measured-${Math.random()}`);
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const executed = new Set(result.filter(isExecuted).map(({ url }) => url.replace(/^.*\/(?=(apps|packages)\/)/, '')));
    common = common?.intersection(executed) ?? executed;
  }
  session.disconnect();
  return [...(common ?? [])].filter((file) => !periodicFiles.test(file)).toSorted();
}

function isExecuted({ url, functions }: Profiler.ScriptCoverage): boolean {
  return followedFiles.test(url) && functions.some(({ ranges: [range] }) => range !== undefined && range.count > 0);
}
