// Writes HTTP/2 frames as bytes, because no client library sends the frames that tests need. Numbers are from RFC 9113,
// section 6.

export const frameTypes = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
};

export const flags = { endStream: 1, ack: 1, endHeaders: 4, padded: 8 };

const streamIdMask = 0x7fff_ffff;

const frameHeaderBytes = 9;

export function http2Frame(
  type: number,
  frameFlags: number,
  streamId: number,
  payload: Uint8Array = Buffer.alloc(0),
): Buffer {
  const header = Buffer.alloc(frameHeaderBytes);
  header.writeUIntBE(payload.length, 0, 3);
  header[3] = type;
  header[4] = frameFlags;
  header.writeUInt32BE(streamId, 5);
  return Buffer.concat([header, payload]);
}

/** Encodes a number as four bytes in big-endian order. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[] = []): Buffer {
  const payload = settings.map(([id, value]) => Buffer.concat([Buffer.from([0, id]), uint32(value)]));
  return http2Frame(frameTypes.settings, 0, 0, Buffer.concat(payload));
}

/** The beginning of a client's connection: the preface and its settings. */
export const clientPreface = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settingsFrame()]);

export const pingFrame = (frameFlags = 0) => http2Frame(frameTypes.ping, frameFlags, 0, Buffer.alloc(8));

export const resetFrame = (streamId: number) => http2Frame(frameTypes.reset, 0, streamId, uint32(8));

export const windowUpdateFrame = (streamId: number, size: number) =>
  http2Frame(frameTypes.windowUpdate, 0, streamId, uint32(size));

export const dataFrame = (streamId: number, data: Uint8Array, frameFlags: number = flags.endStream) =>
  http2Frame(frameTypes.data, frameFlags, streamId, data);

/**
 * Encodes a text without Huffman coding (RFC 7541, 5.2). Its length is an integer with a prefix of seven bits (5.1).
 */
function hpackText(text: string): Buffer {
  const length = [Math.min(text.length, 127)];
  let rest = text.length - 127;
  for (; rest >= 128; rest >>= 7) length.push((rest & 127) | 128);
  if (rest >= 0) length.push(rest);
  return Buffer.concat([Buffer.from(length), Buffer.from(text, 'latin1')]);
}

/** Encodes a field with a literal name, without indexing (RFC 7541, 6.2.2) or with incremental indexing (6.2.1). */
export function hpackField(name: string, value: string, isIndexed = false): Buffer {
  return Buffer.concat([Buffer.from([isIndexed ? 0x40 : 0]), hpackText(name), hpackText(value)]);
}

export type Fields = Readonly<Record<string, string>>;

export function headerBlock(fields: Fields): Buffer {
  return Buffer.concat(Object.entries(fields).map(([name, value]) => hpackField(name, value)));
}

/** Returns the frames of several streams of a client, one stream after the other. */
export function streamsOf(count: number, make: (streamId: number) => readonly Uint8Array[], firstId = 1): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, index) => make(2 * index + firstId)).flat());
}

export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/**
 * Returns a function that takes the bytes of a connection in chunks of any length, and passes each frame to `onFrame`.
 */
export function frameReader(onFrame: (received: ReceivedFrame) => void): (bytes: Buffer) => void {
  let unread = Buffer.alloc(0);
  return (bytes) => {
    unread = Buffer.concat([unread, bytes]);
    while (unread.length >= frameHeaderBytes) {
      const end = frameHeaderBytes + unread.readUIntBE(0, 3);
      if (unread.length < end) break;
      const [type = 0, frameFlags = 0] = unread.subarray(3, 5);
      const streamId = unread.readUInt32BE(5) & streamIdMask;
      onFrame({ type, flags: frameFlags, streamId, payload: unread.subarray(frameHeaderBytes, end) });
      unread = unread.subarray(end);
    }
  };
}
