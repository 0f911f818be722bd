import { createLogger } from '@order-gateway/runtime/logger';
import { http2Limits } from '../../../src/limits.ts';
import { fixedDeps } from '../fixed-deps.ts';
import { grpcServerOf } from '../servers.ts';

// The gRPC port in a separate process, so that tests can observe its memory and see it crash. The message `stop` closes
// the port. The process responds to every other message from its parent with a report.
// Usage: `node grpc-server-process.ts LIMITS_AS_JSON [CERTIFICATE_AS_JSON]`

export interface ServerReport {
  /** The highest sample of the resident memory since the last report, in bytes. */
  readonly rssMax: number;
  /** The number of errors logged so far. */
  readonly errors: number;
}

let errors = 0;
let rssMax = 0;
const sample = () => {
  rssMax = Math.max(rssMax, process.memoryUsage.rss());
};
setInterval(sample, 20).unref();

const logger = createLogger({
  write(line) {
    if (JSON.parse(line).level === 'error') errors += 1;
  },
});
const deps = fixedDeps(logger);
const limits = { ...http2Limits, ...JSON.parse(process.argv[2] ?? '{}') };
const certificate = process.argv[3] && JSON.parse(process.argv[3]);
const tls = certificate ? { context: certificate, renew: () => {} } : undefined;
const server = grpcServerOf(deps, { limits, tls });
process.send?.({ port: await server.listen(0, '127.0.0.1') });
process.on('message', (message) => {
  if (message === 'stop') return void server.close().then(() => process.disconnect?.());
  sample();
  process.send?.({ rssMax, errors } satisfies ServerReport);
  rssMax = 0;
});
// Without this, the process would outlive a test run that is killed.
process.once('disconnect', () => process.exit());
