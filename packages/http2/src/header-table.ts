import { staticTable } from './static-table.ts';

/** A header field as it stands in a table; it is held against the rules once, however often it is sent. */
export interface TableEntry {
  readonly name: string;
  readonly value: string;
  /** Whether a request may have it (RFC 9113, 8.2.1). */
  readonly isValid: boolean;
}

/** The room for a client's table: the default, which is not changed (RFC 9113, 6.5.2). */
export const tableBytesMax = 4_096;

/** What an entry counts beside its text (RFC 7541, 4.1). */
const entryOverhead = 32;

/** Lower case only (RFC 9113, 8.2.1), of the characters of a token (RFC 9110, 5.6.2); names with a colon are the protocol's own. */
const namePattern = /^:?[!#$%&'*+\-.^_`|~0-9a-z]+$/;

/**
 * No control characters but tabs (RFC 9113, 8.2.1). Blanks around a value are let pass and are none of it (`fieldOf`), as over
 * HTTP/1.1: some clients send what their users gave them. Node.js's server would leave the field out without a word.
 */
const valuePattern = /^[\t -~\x80-\xff]*$/;

/** The protocol's own fields have no blanks, and what each is made of (RFC 9113, 8.3.1, and RFC 9110, 4.2 and 9.1). */
const pseudoPatterns: ReadonlyMap<string, RegExp> = new Map([
  [':method', /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/],
  [':scheme', /^[A-Za-z][A-Za-z0-9+.-]*$/],
  [':path', /^(\/[!-~\x80-\xff]*|\*)$/],
  [':authority', /^[!-~\x80-\xff]+$/],
]);

export function entryOf(name: string, value: string): TableEntry {
  const pattern = name.startsWith(':') ? (pseudoPatterns.get(name) ?? valuePattern) : valuePattern;
  return { name, value, isValid: namePattern.test(name) && pattern.test(value) };
}

export function sizeOf({ name, value }: TableEntry): number {
  return name.length + value.length + entryOverhead;
}

/** In the place of an entry that does not count any more, so that its text is not kept. */
const evicted: TableEntry = { name: '', value: '', isValid: false };

const staticEntries: readonly TableEntry[] = staticTable.map(([name, value]) => entryOf(name, value));

/** The two header tables of one direction of a connection: the fixed one, and the one that the client fills (RFC 7541, 2.3). */
export class HeaderTable {
  /** The newest last; those before the first one that counts are evicted. */
  #entries: TableEntry[] = [];
  #first = 0;
  #bytes = 0;
  #bytesMax = tableBytesMax;

  /** By its index, which counts from 1: the fixed table, then the client's, the newest first. */
  at(index: number): TableEntry | undefined {
    if (index <= staticEntries.length) return staticEntries[index - 1];
    const place = this.#entries.length - (index - staticEntries.length);
    return place < this.#first ? undefined : this.#entries[place];
  }

  /** Evicts the oldest ones to make room. An entry that is larger than the table empties it (RFC 7541, 4.4). */
  add(entry: TableEntry): void {
    const bytes = sizeOf(entry);
    this.#evictTo(this.#bytesMax - bytes);
    if (bytes > this.#bytesMax) return;
    this.#entries.push(entry);
    this.#bytes += bytes;
  }

  /** Must be at most `tableBytesMax`. */
  resize(bytesMax: number): void {
    this.#bytesMax = bytesMax;
    this.#evictTo(bytesMax);
  }

  #evictTo(bytesMax: number): void {
    while (this.#bytes > bytesMax) {
      const oldest = this.#entries[this.#first];
      if (oldest === undefined) return;
      this.#bytes -= sizeOf(oldest);
      this.#entries[this.#first] = evicted;
      this.#first += 1;
    }
    // Not at each one: moving the rest would cost a walk over all of them.
    if (this.#first > tableBytesMax / entryOverhead) {
      this.#entries = this.#entries.slice(this.#first);
      this.#first = 0;
    }
  }
}
