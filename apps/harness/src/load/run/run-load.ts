import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Credentials } from '@order-gateway/domain/accounts';
import { loadFixtures } from '@order-gateway/fixtures';
import { createJournal } from '../../audit/journal.ts';
import { messageOf } from '../../command/command.ts';
import { numberOf } from '../../workload/orders.ts';
import { createCallMaker, type KnownOrder, type LoadCall } from '../calls/call-maker.ts';
import { openSender, type Reply, type Sender } from '../calls/sender.ts';
import { arrivalsOf, type LoadSettings } from '../profile/profile.ts';
import { runClosedLoop, runOpenLoop, startClock } from './loops.ts';
import { createProgress, type ProgressOutput } from './progress.ts';
import { createRecorder, type Recorder } from './recorder.ts';

export interface LoadRun {
  readonly settings: LoadSettings;
  /** It is closed when the run ends. */
  readonly sender: Sender;
  readonly credentials: readonly Credentials[];
  /** The account that starts, ends and records payments; required if the run has such calls. */
  readonly checkout?: Credentials | undefined;
  /** Where calls and responses are stored; the file must not exist. */
  readonly journalFile?: string | undefined;
  /** Where progress is written; nowhere if absent. */
  readonly progress?: ProgressOutput;
}

export interface LoadOutcome {
  readonly recorder: Recorder;
  readonly startedAt: Date;
  /** The duration of the run, up to its last response or its abort. */
  readonly seconds: number;
  readonly interrupted: boolean;
  /** The error that ended the run early, such as a full disk. */
  readonly failure: string | undefined;
}

const progressEveryMs = 500;

/**
 * Sends all calls and counts their outcomes. When `signal` aborts, the run ends immediately, with the counts up to
 * then.
 */
export async function runLoad(run: LoadRun, signal: AbortSignal): Promise<LoadOutcome> {
  const { settings, credentials } = run;
  const arrivals = arrivalsOf(settings.phases);
  const { known, remember } = createMemory();
  const makeCall = createCallMaker(settings, await loadFixtures(), credentials, { checkout: run.checkout, known });
  const { seed, metadata_share } = settings;
  const startedAt = new Date();
  const clock = startClock();
  const clientIds = credentials.map(({ clientId }) => clientId);
  const head = { seed, client_ids: clientIds, metadata_share, started_at_ms: startedAt.getTime() };
  const journal = run.journalFile === undefined ? undefined : createJournal(run.journalFile, head);
  let failure: string | undefined;
  const failed = new AbortController();
  const onFailure = (error: unknown) => {
    failure ??= messageOf(error);
    failed.abort();
  };
  const recorder = createRecorder({
    plannedSeconds: arrivals.seconds,
    journal,
    numberOf: (orderId) => numberOf(settings.seed, orderId),
    onFailure,
  });
  const sender: Sender = {
    ...run.sender,
    async send(call) {
      const reply = await run.sender.send(call);
      remember(call, reply);
      return reply;
    },
  };
  const progress = run.progress && createProgress(run.progress, recorder, arrivals.seconds);
  const ticking = setInterval(() => progress?.update(clock.now()), progressEveryMs);
  const execution = { sender, recorder, clock, signal: AbortSignal.any([signal, failed.signal]), makeCall };
  try {
    if (settings.mode === 'open') await runOpenLoop(execution, arrivals, settings.max_pending);
    else await runClosedLoop(execution, settings.connections, arrivals.seconds);
  } finally {
    clearInterval(ticking);
    progress?.end();
    recorder.end();
    sender.close();
    journal?.close();
  }
  return { recorder, startedAt, seconds: clock.now() / 1_000, interrupted: signal.aborted, failure };
}

/** The maximum number of remembered orders. No call is about an order this far back. */
const knownMax = 10_000;

/** Remembers the latest orders whose creation was acknowledged. */
function createMemory() {
  const orders = new Map<number, KnownOrder>();
  return {
    known: (number: number) => orders.get(number),
    remember({ operation, order }: LoadCall, { orders: shown = [] }: Reply) {
      const { order_token, created_at } = shown[0] ?? {};
      if (operation !== 'CreateOrder' || order === undefined || order_token === undefined || created_at === undefined)
        return;
      orders.set(order.number, { order_token, created_at });
      if (orders.size > knownMax) orders.delete(orders.keys().next().value as number);
    },
  };
}

/** Long enough for more than 5,000 calls, after which the compiler has optimized the path of a call. */
const warmUpSecondsMax = 1.5;
/** The maximum share of the run's duration: a run of a few seconds does not justify a longer warm-up. */
const warmUpShareMax = 0.25;
const warmUpClients = 4;

const response = { order_id: 'warm-up', service_order_id: 1, order_token: 't', payment_link: '/payment/t' };
const responseJson = JSON.stringify({ ...response, created_at: '', order_status: 'UN_PAID', orders: [] });

/**
 * Sends calls like those of the run to servers in this process. They respond immediately. Without a warm-up, the
 * latencies of a run's first seconds would be too long, because the generator's own code would not be compiled yet.
 */
export async function warmUp({ settings, credentials, checkout }: LoadRun, signal: AbortSignal): Promise<void> {
  const orderLife = { checkout, known: () => undefined };
  const makeCall = createCallMaker(settings, await loadFixtures(), credentials, orderLife);
  const rpc = connectNodeAdapter({
    routes: (router) =>
      router.service(OrderService, { createOrder: () => ({ orderId: response.order_id }), listOrders: () => ({}) }),
  });
  const http = createServer((request, reply) => {
    if (!request.url?.startsWith('/order')) return rpc(request, reply);
    request.resume().on('end', () => reply.setHeader('content-type', 'application/json').end(responseJson));
  });
  const grpc = createHttp2Server(rpc);
  const [httpAddress, grpcAddress] = [await listen(http), await listen(grpc)];
  const sender = openSender({ httpUrl: `http://${httpAddress}`, grpcAddress }, warmUpClients);
  const seconds = Math.min(warmUpSecondsMax, warmUpShareMax * arrivalsOf(settings.phases).seconds);
  const recorder = createRecorder({ plannedSeconds: seconds });
  await runClosedLoop({ sender, recorder, clock: startClock(), signal, makeCall }, warmUpClients, seconds);
  sender.close();
  http.close();
  http.closeAllConnections();
  grpc.close();
}

async function listen(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
