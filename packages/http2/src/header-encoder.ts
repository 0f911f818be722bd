import { staticTable } from './static-table.ts';

/** The header fields of an answer: names in lower case and values in turn, a character a byte. */
export type AnswerFields = readonly string[];

/** Where the fixed table has a field, and where it has the name of one: by their indexes. */
const indexes = new Map<string, number>();
const nameIndexes = new Map<string, number>();
for (const [index, [name, value]] of staticTable.entries()) {
  indexes.set(`${name}: ${value}`, index + 1);
  if (!nameIndexes.has(name)) nameIndexes.set(name, index + 1);
}

const indexedBit = 0x80;
const nameIndexMax = 0x0f;
const lengthMax = 0x7f;

/**
 * Writes fields with the fixed table alone (RFC 7541, 6.1 and 6.2.2): a few dozen bytes more than with a table of our own, and
 * nothing that has to be the same on both sides. Of the table only `:status` is used as a whole.
 */
export function encodeHeaders(fields: AnswerFields): Buffer {
  // A length takes up to five bytes, and a name that is not in the table one more.
  let room = 0;
  for (const text of fields) room += text.length + 6;
  const bytes = Buffer.allocUnsafe(room);
  let at = 0;
  for (let place = 0; place < fields.length; place += 2) {
    const name = fields[place] ?? '';
    const value = fields[place + 1] ?? '';
    const index = name === ':status' ? indexes.get(`${name}: ${value}`) : undefined;
    if (index === undefined) {
      at = writeName(bytes, at, name);
      at = writeString(bytes, at, value);
    } else {
      bytes[at] = indexedBit | index;
      at += 1;
    }
  }
  return bytes.subarray(0, at);
}

function writeName(bytes: Buffer, at: number, name: string): number {
  const index = nameIndexes.get(name);
  if (index !== undefined) return writeInteger(bytes, at, index, nameIndexMax);
  bytes[at] = 0;
  return writeString(bytes, at + 1, name);
}

function writeString(bytes: Buffer, at: number, text: string): number {
  const from = writeInteger(bytes, at, text.length, lengthMax);
  return from + bytes.write(text, from, 'latin1');
}

/** RFC 7541, 5.1, with no bits before the number. */
function writeInteger(bytes: Buffer, at: number, value: number, max: number): number {
  if (value < max) {
    bytes[at] = value;
    return at + 1;
  }
  bytes[at] = max;
  let rest = value - max;
  let next = at + 1;
  while (rest > 0x7f) {
    bytes[next] = (rest & 0x7f) | 0x80;
    rest >>= 7;
    next += 1;
  }
  bytes[next] = rest;
  return next + 1;
}
