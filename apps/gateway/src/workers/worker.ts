import cluster from 'node:cluster';
import { createLogger, flushLogger, primaryOutput } from '@order-gateway/runtime/logger';
import { describe, stopAndExit } from '@order-gateway/runtime/process';
import { openGateway } from '../gateway.ts';
import { createMetrics } from '../runtime/telemetry/metrics.ts';
import type { PrimaryMessage, WorkerMessage, WorkerStart } from './workers.ts';

// The program of a worker, which is one of the processes that serve both ports. workers.ts starts it.

// Ignores signals, because terminals and supervisors send them to all processes of a group. The primary process tells
// each worker when to drain.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => {});

// If this property were not set, Node.js would end a worker without a drain once the primary process has ended.
if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;

process.once('message', ({ number, logLevel, config }: WorkerStart) => {
  const output = primaryOutput((lines, done) => send({ kind: 'log', lines }, done));
  const logger = createLogger(output, logLevel).child({ worker: number });
  const metrics = createMetrics();
  const opening = openGateway(config, logger, metrics);
  opening.then(
    ({ close, reloadTls, ...ports }) => send({ kind: 'ready', ports }),
    (error) => send({ kind: 'failed', reason: describe(error) }, () => process.exit(1)),
  );
  let isDraining = false;
  const drain = () => {
    if (isDraining) return;
    isDraining = true;
    stopAndExit(async () => {
      await (await opening).close();
      await flushLogger(logger);
    }, config.drainDelayMs);
  };
  // The channel to the primary process closes if that process is killed.
  process.once('disconnect', drain);
  process.on('message', async ({ kind }: PrimaryMessage) => {
    if (kind === 'drain') drain();
    else if (kind === 'reloadTls') await (await opening).reloadTls();
    else if (kind === 'collect') send({ kind: 'metrics', metrics: await metrics.collect() });
  });
});

function send(message: WorkerMessage, done = () => {}): void {
  // Without a callback, `send` would emit an error if the primary process has ended.
  process.send?.(message, undefined, undefined, done);
}
