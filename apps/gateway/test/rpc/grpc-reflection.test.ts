import { fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code } from '@connectrpc/connect';
import { ServerReflection } from '@order-gateway/contract/grpc/reflection/v1/reflection_pb';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { expect, onTestFinished, test, vi } from 'vitest';
import { clientPreface, dataFrame, frameTypes } from '../../../../tools/http2-frames.ts';
import { http2Limits } from '../../src/limits.ts';
import { createOrderPath, lengthPrefixed, sendCall } from '../helpers/grpc/grpc-call.ts';
import { runGrpcServer, useRawClient, useSession } from '../helpers/grpc/grpc-servers.ts';
import { headersFrame, isFrame, requestFields } from '../helpers/grpc/raw-client.ts';
import { bufCurl, grpcClient } from '../helpers/grpc/rpc-clients.ts';
import { useGateway } from '../helpers/running-gateway.ts';

const gateway = useGateway();

const services = [
  'gateway.v1.BrandService',
  'gateway.v1.CheckoutService',
  'gateway.v1.CredentialsService',
  'gateway.v1.EventService',
  'gateway.v1.OrderService',
  'gateway.v1.WebhookService',
  'grpc.health.v1.Health',
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
];

test.each(['grpc-v1', 'grpc-v1alpha'])(
  'buf curl lists and calls the services with %s reflection, without a proto file',
  async (version) => {
    const reflect = ['--protocol', 'grpc', '--http2-prior-knowledge', '--reflect-protocol', version];
    const listed = await bufCurl(...reflect, '--list-services', gateway.grpcUrl);
    expect(listed.trim().split('\n').toSorted()).toEqual(services);
    const headers = Object.entries(gateway.headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
    const order = validOrderInput({ order_id: `reflected-by-${version}` });
    const created = await bufCurl(
      ...reflect,
      ...headers,
      '-d',
      JSON.stringify(order),
      `${gateway.grpcUrl}${createOrderPath}`,
    );
    expect(JSON.parse(created)).toMatchObject({ order_id: order.order_id, order_status: 'UN_PAID' });
    const health = await bufCurl(...reflect, `${gateway.grpcUrl}/grpc.health.v1.Health/Check`);
    expect(JSON.parse(health)).toEqual({ status: 'SERVING' });
  },
);

test('reflection returns files with their imports, and an error message in the stream for unknown names', async () => {
  const client = grpcClient(ServerReflection, gateway);
  const queries = [
    { case: 'fileByFilename', value: 'gateway/v1/order_service.proto' },
    { case: 'fileContainingSymbol', value: 'gateway.v1.OrderService.CreateOrder' },
    { case: 'fileContainingSymbol', value: 'google.rpc.ErrorInfo' },
    { case: 'allExtensionNumbersOfType', value: 'google.protobuf.MethodOptions' },
    {
      case: 'fileContainingExtension',
      value: { containingType: 'google.protobuf.MethodOptions', extensionNumber: 50_001 },
    },
    { case: 'allExtensionNumbersOfType', value: 'gateway.v1.Nothing' },
    { case: 'fileByFilename', value: 'nothing.proto' },
    { case: 'fileContainingSymbol', value: 'gateway.v1.Nothing' },
    { case: 'fileContainingExtension', value: { containingType: 'gateway.v1.CreateOrderRequest', extensionNumber: 1 } },
  ] as const;
  const results: unknown[] = [];
  const requests = async function* () {
    for (const messageRequest of queries) yield { host: 'example.com', messageRequest };
  };
  for await (const {
    validHost,
    originalRequest,
    messageResponse: { case: kind, value },
  } of client.serverReflectionInfo(requests())) {
    expect([validHost, originalRequest?.messageRequest.case]).toEqual(['example.com', queries[results.length]?.case]);
    if (kind === 'fileDescriptorResponse')
      results.push(value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name));
    else if (kind === 'allExtensionNumbersResponse') results.push(value.extensionNumber.toSorted());
    else results.push(kind === 'errorResponse' ? value.errorCode : kind);
  }
  const operationFiles = ['google/protobuf/descriptor.proto', 'gateway/v1/operation.proto'];
  const httpFiles = ['google/api/http.proto', 'google/api/annotations.proto'];
  const orderFiles = [...operationFiles, 'gateway/v1/order.proto', ...httpFiles, 'gateway/v1/order_service.proto'];
  const detailFiles = ['google/protobuf/duration.proto', 'google/rpc/error_details.proto'];
  expect(results).toEqual([
    orderFiles,
    orderFiles,
    detailFiles,
    [50_001, 72_295_728],
    operationFiles,
    ...Array(4).fill(Code.NotFound),
  ]);
});

const reflectionCall = {
  ':path': '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
  'content-type': 'application/grpc',
};

test('a reflection call is limited in bytes and time, and is not logged', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const server = await runGrpcServer();
  const session = useSession(server.port);
  // A request with a `host` of 3,000 bytes and `list_services`.
  const message = lengthPrefixed(
    Buffer.concat([Buffer.from([0x0a, 0xb8, 0x17]), Buffer.alloc(3_000, 'x'), Buffer.from([0x3a, 0])]),
  );
  const flood = await sendCall(session, { headers: reflectionCall, chunks: Array(6).fill(message), ends: true });
  expect(flood.trailers['grpc-status']).toBe(String(Code.ResourceExhausted));
  const idle = await useRawClient(server.port);
  const headers = headersFrame(1, { ...requestFields, ...reflectionCall }, 0);
  idle.socket.write(Buffer.concat([clientPreface, headers, dataFrame(1, message, 0)]));
  await idle.firstFrame(isFrame(frameTypes.data, 1));
  vi.advanceTimersByTime(2 * http2Limits.streamTimeoutMs);
  expect((await idle.firstFrame(isFrame(frameTypes.reset, 1)))?.payload.readUInt32BE(0)).toBe(8);
  await server.close();
  expect([server.calls, server.errors]).toEqual([[], []]);
});

test('the HTTP port serves neither the health service nor reflection', async () => {
  const post = (path: string) =>
    fetch(`${gateway.url}${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });
  for (const path of ['/grpc.health.v1.Health/Check', reflectionCall[':path']])
    expect((await post(path)).status).toBe(404);
});
