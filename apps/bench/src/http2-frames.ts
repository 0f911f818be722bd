/** The types and flags of HTTP/2 frames that the sender knows (RFC 9113, 6). */
export const frameTypes = { data: 0, headers: 1, resetStream: 3, settings: 4, ping: 6, goAway: 7, windowUpdate: 8 };
export const endStream = 0x1;
export const endHeaders = 0x4;
export const ack = 0x1;
export const frameHeadBytes = 9;

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(frameHeadBytes + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(streamId, 5);
  bytes.set(payload, frameHeadBytes);
  return bytes;
}

/** Settings by their number. */
export function settingsFrame(settings: Readonly<Record<number, number>>): Buffer {
  const payload = Buffer.concat(
    Object.entries(settings).map(([id, value]) => {
      const entry = Buffer.alloc(6);
      entry.writeUInt16BE(Number(id), 0);
      entry.writeUInt32BE(value, 2);
      return entry;
    }),
  );
  return frame(frameTypes.settings, 0, 0, payload);
}

export function windowUpdateFrame(increment: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(increment);
  return frame(frameTypes.windowUpdate, 0, 0, payload);
}

/** Header fields as literals that neither side keeps (RFC 7541, 6.2.2): every request's block has the same bytes. */
export function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [Buffer.of(0), literal(name), literal(value)]),
  );
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text);
  // A length from 127 on goes on in a second byte (RFC 7541, 5.1).
  const length = bytes.length < 127 ? Buffer.of(bytes.length) : Buffer.of(127, bytes.length - 127);
  return Buffer.concat([length, bytes]);
}
