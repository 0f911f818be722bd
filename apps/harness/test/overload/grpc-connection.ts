import type { Socket } from 'node:net';
import type { Credentials } from '@order-gateway/domain/accounts';
import { type FloodConnection, renewerOf } from './connection.ts';

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const types = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, windowUpdate: 8 };
const endStream = 1;
const endHeaders = 4;
const acknowledged = 1;
const frameHeadBytes = 9;
const maxConcurrentStreams = 3;
const initialWindowSize = 4;

/** gRPC over HTTP/2 without reading headers: a stream with data is a success, one with headers only an error. */
export function createGrpcConnection(
  socket: Socket,
  { clientId, clientSecret }: Credentials,
  order: Buffer,
): FloodConnection {
  const fields: readonly (readonly [string, string])[] = [
    [':path', '/gateway.v1.OrderService/CreateOrder'],
    [':authority', 'localhost'],
    ['content-type', 'application/grpc'],
    ['te', 'trailers'],
    ['x-client-id', clientId],
    ['x-client-secret', clientSecret],
  ];
  // RFC 7541: the first call puts the fields into the dynamic table, the others refer to them. 0x83 and 0x86 are POST and http.
  const firstBlock = Buffer.concat([Buffer.from([0x83, 0x86]), ...fields.map(literalOf)]);
  const laterBlock = Buffer.from([0x83, 0x86, ...fields.map((_, index) => 0x80 | (61 + fields.length - index))]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(order.length, 1);
  const message = Buffer.concat([prefix, order]);
  const renew = renewerOf(message);
  const calls = new Map<number, { onEnd: (isCreated: boolean) => void; hasData: boolean }>();
  let [nextStream, window, streamsMax] = [1, 65_535, 100];
  let received: Buffer = Buffer.alloc(0);

  const settings = Buffer.alloc(6);
  settings.writeUInt16BE(initialWindowSize);
  settings.writeUInt32BE(2 ** 31 - 1, 2);
  const windowUpdate = Buffer.alloc(4);
  windowUpdate.writeUInt32BE(2 ** 31 - 1 - 65_535);
  socket.write(
    Buffer.concat([
      Buffer.from(preface),
      frame(types.settings, 0, 0, settings),
      frame(types.windowUpdate, 0, 0, windowUpdate),
    ]),
  );
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    let at = 0;
    while (received.length - at >= frameHeadBytes) {
      const length = received.readUIntBE(at, 3);
      if (received.length - at < frameHeadBytes + length) break;
      const payload = received.subarray(at + frameHeadBytes, at + frameHeadBytes + length);
      read(received[at + 3] ?? 0, received[at + 4] ?? 0, received.readUInt32BE(at + 5), payload);
      at += frameHeadBytes + length;
    }
    received = received.subarray(at);
  });
  socket.on('error', () => {});

  const read = (type: number, flags: number, streamId: number, payload: Buffer) => {
    const call = calls.get(streamId);
    if (type === types.windowUpdate && streamId === 0) window += payload.readUInt32BE();
    if (type === types.ping && flags === 0) socket.write(frame(types.ping, acknowledged, 0, payload));
    if (type === types.settings && flags === 0) {
      for (let at = 0; at < payload.length; at += 6)
        if (payload.readUInt16BE(at) === maxConcurrentStreams) streamsMax = payload.readUInt32BE(at + 2);
      socket.write(frame(types.settings, acknowledged, 0, Buffer.alloc(0)));
    }
    if (call === undefined) return;
    if (type === types.data) call.hasData = true;
    const isEnd = (type === types.data || type === types.headers) && (flags & endStream) !== 0;
    if (!isEnd && type !== types.reset) return;
    calls.delete(streamId);
    call.onEnd(isEnd && call.hasData);
  };
  return {
    get isFree() {
      return calls.size < streamsMax && window >= message.length && socket.writable;
    },
    send(onEnd) {
      renew();
      calls.set(nextStream, { onEnd, hasData: false });
      const block = nextStream === 1 ? firstBlock : laterBlock;
      const headers = frame(types.headers, endHeaders, nextStream, block);
      socket.write(Buffer.concat([headers, frame(types.data, endStream, nextStream, message)]));
      window -= message.length;
      nextStream += 2;
    },
    close: () => socket.destroy(),
  };
}

function frame(type: number, flags: number, streamId: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(frameHeadBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** A literal field with incremental indexing and a new name (RFC 7541, 6.2.1). */
function literalOf([name, value]: readonly [string, string]): Buffer {
  return Buffer.concat([
    Buffer.from([0x40]),
    ...[name, value].map((text) => Buffer.from(`${String.fromCharCode(text.length)}${text}`, 'latin1')),
  ]);
}
