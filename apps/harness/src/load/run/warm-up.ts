import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { loadFixtures } from '@order-gateway/fixtures';
import { createCallMaker } from '../calls/call-maker.ts';
import { openSender } from '../calls/sender.ts';
import { arrivalsOf } from '../profile/arrivals.ts';
import { startClock } from './clock.ts';
import { runClosedLoop } from './loops.ts';
import { createRecorder } from './recorder.ts';
import type { LoadRun } from './run-load.ts';

/** Long enough for more than 5,000 calls, after which the compiler has optimized the path of a call. */
const secondsMax = 1.5;
/** The maximum share of the run's duration: a run of a few seconds does not justify a longer warm-up. */
const shareMax = 0.25;
const clients = 4;

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
  const sender = openSender({ httpUrl: `http://${httpAddress}`, grpcAddress }, clients);
  const seconds = Math.min(secondsMax, shareMax * arrivalsOf(settings.phases).seconds);
  const recorder = createRecorder({ plannedSeconds: seconds });
  await runClosedLoop({ sender, recorder, clock: startClock(), signal, makeCall }, clients, seconds);
  sender.close();
  http.close();
  http.closeAllConnections();
  grpc.close();
}

async function listen(server: Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}
