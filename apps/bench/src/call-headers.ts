import { staticTable } from '@gateway/http2/static-table';

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
    at: fixedIndex((entry) => entry[0] === name && entry[1] === value),
  }));
  const kept = fields.filter(({ at }) => at === undefined);
  // The newest entry has the lowest place.
  const placeOf = (field: (typeof fields)[number]) =>
    Buffer.of(0x80 | (field.at ?? firstDynamicIndex + kept.length - 1 - kept.indexOf(field)));
  const literalOf = ({ name, value }: (typeof fields)[number]) => {
    const nameAt = fixedIndex((entry) => entry[0] === name);
    const nameBytes = nameAt === undefined ? [Buffer.of(0x40), literal(name)] : [Buffer.of(0x40 | nameAt)];
    return Buffer.concat([...nameBytes, literal(value)]);
  };
  return {
    first: Buffer.concat(fields.map((field) => (field.at === undefined ? literalOf(field) : placeOf(field)))),
    later: Buffer.concat(fields.map(placeOf)),
  };
}

/** Indexes count from 1. */
function fixedIndex(isWanted: (entry: (typeof staticTable)[number]) => boolean): number | undefined {
  const place = staticTable.findIndex(isWanted);
  return place === -1 ? undefined : place + 1;
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text);
  // A length from 127 on goes on in a second byte (RFC 7541, 5.1).
  const length = bytes.length < 127 ? Buffer.of(bytes.length) : Buffer.of(127, bytes.length - 127);
  return Buffer.concat([length, bytes]);
}
