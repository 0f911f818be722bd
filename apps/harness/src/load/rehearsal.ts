import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { OrderService, OrderStatus } from '@gateway/contract/gateway/v1/order_service_pb';
import type { GatewayAddresses } from '../gateway-process.ts';
import { runClosedLoop } from './executors.ts';
import type { LoadCall } from './make-calls.ts';
import { createRecorder } from './recorder.ts';
import { startClock } from './run-clock.ts';
import { openSenders } from './senders/open-senders.ts';

/** Long enough for the compiler to have seen and optimised the way of a call: 5,000 of them and more. */
const rehearsalSeconds = 1.5;
const callers = 4;

const answer = {
  ...{
    serviceOrderId: 1n,
    createdAt: '2026-01-01T00:00:00.000+00:00',
    orderId: 'rehearsal',
    orderStatus: OrderStatus.UN_PAID,
  },
  ...{ orderToken: 'rehearsal', paymentLink: 'http://localhost/payment/rehearsal' },
};

const answerJson = JSON.stringify({ service_order_id: 1, order_id: answer.orderId, order_token: answer.orderToken });

/**
 * Sends the calls of a run for a moment to servers of this process that answer at once. Otherwise the first seconds of a run
 * would show how long its own code takes until it is compiled.
 */
export async function rehearse(makeCall: (number: number) => LoadCall, signal: AbortSignal): Promise<void> {
  const rpc = connectNodeAdapter({
    routes: (router) => router.service(OrderService, { createOrder: () => answer }),
  });
  const answerHttp: RequestListener = (request, response) => {
    if (request.url !== '/order') rpc(request, response);
    else request.resume().on('end', () => response.setHeader('content-type', 'application/json').end(answerJson));
  };
  const http = createHttpServer(answerHttp);
  const grpc = createHttp2Server(rpc);
  const addresses: GatewayAddresses = {
    httpUrl: `http://127.0.0.1:${await listen(http)}`,
    grpcAddress: `127.0.0.1:${await listen(grpc)}`,
  };
  const sender = openSenders(addresses, callers);
  const clock = startClock(Date.now());
  const recorder = createRecorder(undefined);
  await runClosedLoop({ sender, recorder, clock, signal, makeCall, first: 0, step: 1 }, callers, rehearsalSeconds);
  sender.close();
  http.close();
  http.closeAllConnections();
  grpc.close();
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}
