/** The types and flags of HTTP/2 frames that the sender knows (RFC 9113, 6). */
export const frameTypes = { data: 0, headers: 1, resetStream: 3, settings: 4, ping: 6, goAway: 7, windowUpdate: 8 };
export const endStream = 0x1;
export const endHeaders = 0x4;
export const ack = 0x1;
export const frameHeadBytes = 9;
/** Where a frame's head names its stream. */
export const streamIdPlace = 5;

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(frameHeadBytes + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(streamId, streamIdPlace);
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

/** Where the fixed header table (RFC 7541, Appendix A) has a field of gRPC requests, and where it has but the name of one. */
const fixedFields: Readonly<Record<string, number>> = { ':method: POST': 3, ':scheme: http': 6 };
const fixedNames: Readonly<Record<string, number>> = {
  ':authority': 1,
  ':path': 4,
  'accept-encoding': 16,
  'content-type': 31,
  'user-agent': 58,
};

/** The first entry of a header table that is not fixed (RFC 7541, 2.3.3). */
const firstDynamicIndex = 62;

/**
 * A request's header fields in the form that gRPC clients use: what the fixed table has by its place there (RFC 7541, 6.1),
 * the rest at first as literals that the other side keeps in its own table (6.2.1), ever after by their places in that. Those
 * have to fit into the table's usual 4 KiB.
 */
export function headerBlocks(headers: Readonly<Record<string, string>>): { first: Buffer; later: Buffer } {
  const fields = Object.entries(headers).map(([name, value]) => ({
    name,
    value,
    at: fixedFields[`${name}: ${value}`],
  }));
  const kept = fields.filter(({ at }) => at === undefined);
  // The newest entry has the lowest place.
  const placeOf = (field: (typeof fields)[number]) =>
    Buffer.of(0x80 | (field.at ?? firstDynamicIndex + kept.length - 1 - kept.indexOf(field)));
  const literalOf = ({ name, value }: (typeof fields)[number]) => {
    const nameAt = fixedNames[name];
    const nameBytes = nameAt === undefined ? [Buffer.of(0x40), literal(name)] : [Buffer.of(0x40 | nameAt)];
    return Buffer.concat([...nameBytes, literal(value)]);
  };
  return {
    first: Buffer.concat(fields.map((field) => (field.at === undefined ? literalOf(field) : placeOf(field)))),
    later: Buffer.concat(fields.map(placeOf)),
  };
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text);
  // A length from 127 on goes on in a second byte (RFC 7541, 5.1).
  const length = bytes.length < 127 ? Buffer.of(bytes.length) : Buffer.of(127, bytes.length - 127);
  return Buffer.concat([length, bytes]);
}
