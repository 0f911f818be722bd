import { toBinary } from '@bufbuild/protobuf';
import { Code } from '@connectrpc/connect';
import { CreateOrderRequestSchema } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { fairTimeoutMs } from '../../src/limits.ts';
import { createOrderPath, lengthPrefixed, orderData, sendCall } from '../helpers/grpc/grpc-call.ts';
import { useSession } from '../helpers/grpc/grpc-servers.ts';
import { scrape, useGateway } from '../helpers/running-gateway.ts';
import { orderMessage } from '../helpers/send-order.ts';

const gateway = useGateway();

const [UNAUTHENTICATED, DEADLINE_EXCEEDED] = [String(Code.Unauthenticated), String(Code.DeadlineExceeded)];

type Headers = Readonly<Record<string, string>>;

/** Returns the gRPC-Web status of a call on the HTTP port, which is in the body, or else its HTTP status. */
async function httpStatus(type: string, body: string | Uint8Array<ArrayBuffer>, headers: Headers): Promise<unknown> {
  const init = { method: 'POST', headers: { 'content-type': type, ...headers }, body };
  const response = await fetch(gateway.url + createOrderPath, init);
  return /grpc-status: (\d+)/.exec(await response.text())?.[1] ?? response.status;
}

async function grpcStatus(headers: Headers, ends = true): Promise<unknown> {
  const session = useSession(gateway.grpcPort);
  const { trailers } = await sendCall(session, {
    headers: { 'content-type': 'application/grpc', 'grpc-timeout': '0n', ...headers },
    chunks: ends ? [lengthPrefixed(orderData('late'))] : [],
    ends,
  });
  return trailers['grpc-status'];
}

/** Returns the statuses of calls with a timeout of zero, in every protocol. */
async function statusesWithoutTime(headers: Headers): Promise<unknown[]> {
  const connectTimeout = { ...headers, 'connect-timeout-ms': '0' };
  const message = toBinary(CreateOrderRequestSchema, orderMessage('late'));
  return [
    await httpStatus('application/json', JSON.stringify(validOrderInput()), connectTimeout),
    await httpStatus('application/proto', message, connectTimeout),
    await httpStatus('application/grpc-web+proto', Buffer.from(lengthPrefixed(message)), {
      ...headers,
      'grpc-timeout': '0n',
    }),
    await grpcStatus(headers),
    // Connect handles compressed calls.
    await grpcStatus({ ...headers, 'grpc-encoding': 'gzip' }),
  ];
}

const outcomes = () =>
  new Set(
    gateway.calls.map(({ level, code, protocol, grpc_status }) => [level, code, protocol, grpc_status].join(' ')),
  );

/** The {@link outcomes} if every call of {@link statusesWithoutTime} has the same one. */
const sameOutcome = (code: string, grpcStatus: string) =>
  new Set([`info ${code} connect `, `info ${code} grpc-web ${grpcStatus}`, `info ${code} grpc ${grpcStatus}`]);

test.each([
  ['no credentials', {}],
  ['malformed credentials', { 'x-client-id': 'app_x', 'x-client-secret': 'sk_x' }],
])('a caller with %s gets "unauthenticated", even if the deadline is zero', async (_, headers) => {
  gateway.calls.length = 0;
  expect(await statusesWithoutTime(headers)).toEqual([401, 401, UNAUTHENTICATED, UNAUTHENTICATED, UNAUTHENTICATED]);
  await expect.poll(() => gateway.calls.length).toBe(5);
  expect(outcomes()).toEqual(sameOutcome('unauthenticated', 'UNAUTHENTICATED'));
});

test('a deadline of zero is logged and counted as client_timeout, not as deadline_exceeded', async () => {
  gateway.calls.length = 0;
  expect(await statusesWithoutTime(gateway.headers)).toEqual([504, 504, ...Array(3).fill(DEADLINE_EXCEEDED)]);
  await expect.poll(() => gateway.calls.length).toBe(5);
  expect(outcomes()).toEqual(sameOutcome('client_timeout', 'DEADLINE_EXCEEDED'));
  const metrics = await scrape(gateway);
  expect(metrics).toContain('operation="CreateOrder",code="client_timeout"');
  expect(metrics).not.toContain('code="deadline_exceeded"');
});

test.each(['identity', 'gzip'])(
  'a deadline that passes while the message arrives is logged as client_timeout: %s',
  async (encoding) => {
    gateway.calls.length = 0;
    const timed = { ...gateway.headers, 'grpc-encoding': encoding, 'grpc-timeout': `${fairTimeoutMs}m` };
    expect(await grpcStatus(timed, false)).toBe(DEADLINE_EXCEEDED);
    await expect.poll(outcomes).toEqual(new Set(['info client_timeout grpc DEADLINE_EXCEEDED']));
  },
);
