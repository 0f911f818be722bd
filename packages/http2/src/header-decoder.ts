import { ConnectionFault, errorCodes, noBytes } from './frames.ts';
import { entryOf, HeaderTable, sizeOf, type TableEntry, tableBytesMax } from './header-table.ts';
import { decodeHuffman } from './huffman.ts';

export interface DecodedHeaders {
  /** Names and values in turn. */
  readonly fields: readonly string[];
  /** Whether every field may stand in a request. */
  readonly isValid: boolean;
  /** Whether there were more or larger fields than are taken; `fields` has none beyond that. */
  readonly isTooLarge: boolean;
}

export interface HeaderLimits {
  /** All names and values, and 32 for each field (RFC 9113, 6.5.2). */
  readonly headerBytesMax: number;
  readonly headerPairsMax: number;
}

/** The first bits of a field's form (RFC 7541, 6) and the bits that are left for its index. */
const forms = {
  indexed: { from: 0x80, indexMask: 0x7f },
  kept: { from: 0x40, indexMask: 0x3f },
  resize: { from: 0x20, indexMask: 0x1f },
  literal: { from: 0, indexMask: 0x0f },
};

const huffmanBit = 0x80;
const lengthMask = 0x7f;

/** Three bytes after the first: far above what a block can hold, and far below what a number can. */
const shiftMax = 14;

/** Reads the header blocks of one connection, in the order in which they came (RFC 7541). */
export class HeaderDecoder {
  readonly #limits: HeaderLimits;
  readonly #table = new HeaderTable();
  #block: Buffer = noBytes;
  #at = 0;

  constructor(limits: HeaderLimits) {
    this.#limits = limits;
  }

  /**
   * Reads a block to its end, also where its fields are too large, as the next blocks lean on the table. Throws where that is
   * not possible.
   */
  decode(block: Buffer): DecodedHeaders {
    this.#block = block;
    this.#at = 0;
    this.#readResizes();
    const fields: string[] = [];
    let bytes = 0;
    let isValid = true;
    let isTooLarge = false;
    while (this.#at < block.length) {
      const entry = this.#readField();
      bytes += sizeOf(entry);
      isValid &&= entry.isValid;
      isTooLarge ||= bytes > this.#limits.headerBytesMax || fields.length >= 2 * this.#limits.headerPairsMax;
      if (!isTooLarge) fields.push(entry.name, entry.value);
    }
    // It may be a small part of a large piece, and the next one may be long in coming.
    this.#block = noBytes;
    return { fields, isValid, isTooLarge };
  }

  /** Changes of the table's room stand at the beginning of a block, and there are two at the most (RFC 7541, 4.2). */
  #readResizes(): void {
    for (let count = 0; count < 2; count += 1) {
      const byte = this.#block[this.#at] ?? 0;
      if (byte < forms.resize.from || byte >= forms.kept.from) return;
      const bytesMax = this.#readInteger(forms.resize.indexMask);
      if (bytesMax > tableBytesMax) throw fault('a header table that is too large');
      this.#table.resize(bytesMax);
    }
  }

  #readField(): TableEntry {
    const byte = this.#block[this.#at] ?? 0;
    if (byte >= forms.indexed.from) return this.#entryAt(this.#readInteger(forms.indexed.indexMask));
    if (byte >= forms.kept.from) {
      const entry = this.#readLiteral(forms.kept.indexMask);
      this.#table.add(entry);
      return entry;
    }
    if (byte >= forms.resize.from) throw fault('a change of the table after a field');
    return this.#readLiteral(forms.literal.indexMask);
  }

  #readLiteral(indexMask: number): TableEntry {
    const index = this.#readInteger(indexMask);
    const name = index === 0 ? this.#readString() : this.#entryAt(index).name;
    return entryOf(name, this.#readString());
  }

  #entryAt(index: number): TableEntry {
    const entry = this.#table.at(index);
    if (entry === undefined) throw fault('an index that stands for nothing');
    return entry;
  }

  #readString(): string {
    const isCoded = ((this.#block[this.#at] ?? 0) & huffmanBit) !== 0;
    const length = this.#readInteger(lengthMask);
    const from = this.#at;
    this.#at += length;
    if (this.#at > this.#block.length) throw fault('a string beyond its end');
    if (!isCoded) return this.#block.toString('latin1', from, this.#at);
    const decoded = decodeHuffman(this.#block.subarray(from, this.#at));
    if (decoded === undefined) throw fault('a string that is no Huffman code');
    return decoded;
  }

  /** RFC 7541, 5.1. */
  #readInteger(mask: number): number {
    let value = this.#readByte() & mask;
    if (value < mask) return value;
    for (let shift = 0; shift <= shiftMax; shift += 7) {
      const byte = this.#readByte();
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw fault('a number that is too large');
  }

  #readByte(): number {
    const byte = this.#block[this.#at];
    if (byte === undefined) throw fault('a field beyond its end');
    this.#at += 1;
    return byte;
  }
}

function fault(what: string): ConnectionFault {
  return new ConnectionFault(errorCodes.compressionError, `a header block has ${what}`);
}
