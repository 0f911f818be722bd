import type { Socket } from 'node:net';
import type { Credentials } from '@order-gateway/domain/accounts';
import {
  clientPreface,
  dataFrame,
  flags,
  frameReader,
  frameTypes,
  hpackField,
  http2Frame,
  settingsFrame,
  windowUpdateFrame,
} from '../../../../tools/http2-frames.ts';
import { type FloodConnection, renewerOf } from './connection.ts';

const settingIds = { maxConcurrentStreams: 3, initialWindowSize: 4 };
const largestWindow = 2 ** 31 - 1;
const firstWindow = 65_535;

/**
 * Creates a gRPC connection that does not decode headers. A stream with data counts as a success, and a stream with
 * only headers counts as an error.
 */
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
  // RFC 7541: the first call puts the fields into the dynamic table, and later calls refer to them. 0x83 and 0x86 are
  // POST and http.
  const firstBlock = Buffer.concat([
    Buffer.from([0x83, 0x86]),
    ...fields.map(([name, value]) => hpackField(name, value, true)),
  ]);
  const laterBlock = Buffer.from([0x83, 0x86, ...fields.map((_, index) => 0x80 | (61 + fields.length - index))]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(order.length, 1);
  const message = Buffer.concat([prefix, order]);
  const renew = renewerOf(message);
  const calls = new Map<number, { onEnd: (isCreated: boolean) => void; hasData: boolean }>();
  let [nextStream, window, streamsMax] = [1, firstWindow, 100];

  socket.write(
    Buffer.concat([
      clientPreface,
      settingsFrame([[settingIds.initialWindowSize, largestWindow]]),
      windowUpdateFrame(0, largestWindow - firstWindow),
    ]),
  );
  const read = frameReader(({ type, flags: frameFlags, streamId, payload }) => {
    const call = calls.get(streamId);
    if (type === frameTypes.windowUpdate && streamId === 0) window += payload.readUInt32BE();
    if (type === frameTypes.ping && frameFlags === 0) socket.write(http2Frame(frameTypes.ping, flags.ack, 0, payload));
    if (type === frameTypes.settings && frameFlags === 0) {
      for (let offset = 0; offset < payload.length; offset += 6)
        if (payload.readUInt16BE(offset) === settingIds.maxConcurrentStreams)
          streamsMax = payload.readUInt32BE(offset + 2);
      socket.write(http2Frame(frameTypes.settings, flags.ack, 0));
    }
    if (call === undefined) return;
    if (type === frameTypes.data) call.hasData = true;
    const isEnd = (type === frameTypes.data || type === frameTypes.headers) && (frameFlags & flags.endStream) !== 0;
    if (!isEnd && type !== frameTypes.reset) return;
    calls.delete(streamId);
    call.onEnd(isEnd && call.hasData);
  });
  socket.on('data', read);
  socket.on('error', () => {});
  return {
    get isFree() {
      return calls.size < streamsMax && window >= message.length && socket.writable;
    },
    send(onEnd) {
      renew();
      calls.set(nextStream, { onEnd, hasData: false });
      const block = nextStream === 1 ? firstBlock : laterBlock;
      const headers = http2Frame(frameTypes.headers, flags.endHeaders, nextStream, block);
      socket.write(Buffer.concat([headers, dataFrame(nextStream, message)]));
      window -= message.length;
      nextStream += 2;
    },
    close: () => socket.destroy(),
  };
}
