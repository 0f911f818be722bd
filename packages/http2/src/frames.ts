/** The types of frames (RFC 9113, 6). */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flags = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

/** Why a stream or a connection is ended (RFC 9113, 7). */
export const errorCodes = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  enhanceYourCalm: 11,
} as const;

/** What a connection can set (RFC 9113, 6.5.2). */
export const settingIds = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

/** What every client sends first (RFC 9113, 3.4). */
export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export const frameHeadBytes = 9;

/** The largest payload that everyone takes, and that we take (RFC 9113, 6.5.2). */
export const frameBytesMax = 16_384;

/** The largest that anyone may allow. */
export const frameBytesLimit = 0xff_ffff;

/** How much may be sent before the other side has said more, on a stream and on a connection (RFC 9113, 6.9.2). */
export const defaultWindow = 65_535;
export const largestWindow = 0x7fff_ffff;

export const noBytes: Buffer = Buffer.alloc(0);

/** A fault that ends the connection (RFC 9113, 5.4.1). */
export class ConnectionFault extends Error {
  readonly code: number;

  constructor(code: number, reason: string) {
    super(reason);
    this.code = code;
  }
}

export function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(frameHeadBytes + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(streamId, 5);
  bytes.set(payload, frameHeadBytes);
  return bytes;
}

export function settingsFrame(settings: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(settings.length * 6);
  for (const [index, [id, value]] of settings.entries()) {
    payload.writeUInt16BE(id, index * 6);
    payload.writeUInt32BE(value, index * 6 + 2);
  }
  return frame(frameTypes.settings, 0, 0, payload);
}

export function windowUpdateFrame(streamId: number, bytes: number): Buffer {
  return frame(frameTypes.windowUpdate, 0, streamId, uint32(bytes));
}

export function resetStreamFrame(streamId: number, code: number): Buffer {
  return frame(frameTypes.resetStream, 0, streamId, uint32(code));
}

export function goAwayFrame(lastStreamId: number, code: number): Buffer {
  return frame(frameTypes.goAway, 0, 0, Buffer.concat([uint32(lastStreamId), uint32(code)]));
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
