import type { Protocol as Door } from '@gateway/fixtures/client';
import { createGrpcSender } from './grpc-sender.ts';
import { createHttpSender } from './http-pool.ts';
import { readConnectReply, readGrpcWebReply, readJsonReply } from './read-replies.ts';
import type { Sender } from './sender.ts';

/** A sender for whichever door a call is made for. Connections are made when they are first used. */
export function openSenders(
  { httpUrl, grpcAddress }: { readonly httpUrl: string; readonly grpcAddress: string },
  connections: number,
): Sender {
  const senders: Record<Door, Sender> = {
    json: createHttpSender(httpUrl, connections, readJsonReply),
    connect: createHttpSender(httpUrl, connections, readConnectReply),
    'grpc-web': createHttpSender(httpUrl, connections, readGrpcWebReply),
    grpc: createGrpcSender(grpcAddress, connections),
  };
  return {
    send: (call) => senders[call.door].send(call),
    close() {
      for (const sender of Object.values(senders)) sender.close();
    },
  };
}
