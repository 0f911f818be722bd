import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ScopeMetrics } from '@opentelemetry/sdk-metrics';
import type { Logger } from '@order-gateway/runtime/logger';
import { StartError } from '@order-gateway/runtime/process';
import type { DestinationStream } from 'pino';
import type { Gateway, GatewayConfig } from '../gateway.ts';
import { workerMetrics } from '../runtime/telemetry/metrics.ts';

export type WorkerMessage =
  | { readonly kind: 'ready'; readonly ports: Ports }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'log'; readonly lines: string }
  | { readonly kind: 'metrics'; readonly metrics: readonly ScopeMetrics[] };

/** A message from the primary process to a worker. The start message is sent first, and only once. */
export type PrimaryMessage = WorkerStart | { readonly kind: 'drain' | 'reloadTls' | 'collect' };

export interface WorkerStart {
  readonly kind: 'start';
  /** The worker's number, from 1. A replacement keeps it. */
  readonly number: number;
  readonly logLevel: string;
  readonly config: GatewayConfig;
}

type Ports = Omit<Gateway, 'close' | 'reloadTls'>;

interface Ending {
  readonly exit_code?: number;
  readonly signal?: string;
  readonly reason?: string | undefined;
}

export type Workers = ReturnType<typeof createWorkers>;

/**
 * The time limit for collecting a worker's metrics: longer than the 2 s that a check takes while the database hangs.
 * Prometheus waits 10 s by default.
 */
const collectTimeoutMs = 3_000;

const pauseMinMs = 100;
const pauseMaxMs = 30_000;
const soonMs = 60_000;

/** Returns the pause before a worker is replaced. It doubles each time that worker ends soon after its start. */
export const nextPauseMs = (pauseMs: number, ranMs: number): number =>
  ranMs > soonMs ? pauseMinMs : Math.min(2 * pauseMs, pauseMaxMs);

/**
 * Runs the gateway in several processes behind the same two ports. This process, the primary, accepts the connections
 * and distributes them to the workers in turn. With `reusePort`, Linux would choose the worker: in a measurement, the
 * busier of two workers got 4 to 8 of 8 connections instead of 4 or 5. The primary also writes the log lines, because a
 * full pipe would interleave the lines of several processes.
 */
export function createWorkers(count: number, logger: Logger, output: DestinationStream) {
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  const ready = new Map<number, Worker>();
  const stopping = new AbortController();

  /** Runs a worker until it ends. Resolves with its exit code or signal, and the reason if one is known. */
  const runOnce = (start: WorkerStart, onReady: (ports: Ports) => void) =>
    new Promise<Ending>((resolve) => {
      const worker = cluster.fork();
      let reason: string | undefined;
      worker.on('message', (message: WorkerMessage) => {
        if (message.kind === 'log') output.write(message.lines);
        else if (message.kind === 'metrics') worker.emit('metrics', message.metrics);
        else if (message.kind === 'failed') reason = message.reason;
        else {
          ready.set(start.number, worker);
          onReady(message.ports);
        }
      });
      const end = (ending: Ending) => {
        ready.delete(start.number);
        resolve(ending);
      };
      worker.once('exit', (code, signal) => end({ exit_code: code, signal, reason }));
      // The worker could not be started, or it ended before a message arrived.
      worker.on('error', (error) => end({ reason: error.message }));
      send(worker, start);
    });

  /** Runs a worker and its replacements. Rejects if the first one can't start. */
  const keepRunning = async (start: WorkerStart, onReady: (ports: Ports) => void): Promise<void> => {
    const { number: worker } = start;
    let hasStarted = false;
    let pauseMs = pauseMinMs;
    while (!stopping.signal.aborted) {
      const startedAt = performance.now();
      const ending = await runOnce(start, (ports) => {
        if (hasStarted) logger.info({ worker }, 'worker replaced');
        hasStarted = true;
        onReady(ports);
      });
      if (stopping.signal.aborted) return;
      if (!hasStarted)
        throw new StartError(
          ending.reason ?? `A worker ended during its startup (${ending.signal ?? ending.exit_code}).`,
        );
      logger.error({ worker, ...ending }, 'worker ended');
      pauseMs = nextPauseMs(pauseMs, performance.now() - startedAt);
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  };

  return {
    /** Collects the metrics of all workers, each with the label `worker`. */
    async collect(): Promise<ScopeMetrics[]> {
      const collecting = numbers.map(async (number) => [number, await metricsOf(ready.get(number))] as const);
      return workerMetrics(new Map(await Promise.all(collecting)));
    },
    /**
     * Starts the workers, and resolves when all are ready. If one can't start, ends all and rejects with a {@link
     * StartError}.
     */
    async open(config: GatewayConfig): Promise<Gateway> {
      cluster.setupPrimary({ exec: join(import.meta.dirname, 'worker.ts'), args: [], serialization: 'advanced' });
      // Kills the workers even if a second signal ends this process without waiting for them.
      process.once('exit', killAll);
      const workers = numbers.map((number) => {
        const { promise, resolve } = Promise.withResolvers<Ports>();
        const start: WorkerStart = { kind: 'start', number, logLevel: logger.level, config };
        return { ready: promise, running: keepRunning(start, resolve) };
      });
      const running = Promise.all(workers.map((worker) => worker.running));
      try {
        await Promise.race([running, Promise.all(workers.map((worker) => worker.ready))]);
      } catch (error) {
        stopping.abort();
        killAll();
        await Promise.allSettled(workers.map((worker) => worker.running));
        throw error;
      }
      return {
        ...(await Promise.any(workers.map((worker) => worker.ready))),
        async close() {
          stopping.abort();
          const serving = new Set(ready.values());
          for (const worker of allWorkers()) {
            if (serving.has(worker)) send(worker, { kind: 'drain' });
            // A worker that is still starting has no calls.
            else worker.process.kill('SIGKILL');
          }
          await running;
        },
        async reloadTls() {
          for (const worker of ready.values()) send(worker, { kind: 'reloadTls' });
        },
      };
    },
  };
}

async function metricsOf(worker: Worker | undefined): Promise<ScopeMetrics[] | undefined> {
  if (worker === undefined) return undefined;
  send(worker, { kind: 'collect' });
  const [metrics] = await once(worker, 'metrics', { signal: AbortSignal.timeout(collectTimeoutMs) }).catch(() => []);
  return metrics;
}

function send(worker: Worker, message: PrimaryMessage): void {
  // Without a callback, the worker would emit an error if it is ending.
  worker.send(message, () => {});
}

function killAll(): void {
  for (const worker of allWorkers()) worker.process.kill('SIGKILL');
}

function allWorkers(): Worker[] {
  return Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
}
